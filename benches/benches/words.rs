//! `random-words`: finding the words of a vocabulary, making 1 000 prompts of 1 024 tokens and
//! checking a sample of them. Budget: 30 ms.

use divan::Bencher;
use servebench_benches as _;
use servebench_core::random::Draws;
use servebench_datasets::{DatasetName, DatasetOptions, load};
use servebench_tokens::{Hub, HubConfig, Tokenizer};

fn main() {
    divan::main();
}

#[divan::bench]
fn prompts(bencher: Bencher<'_, '_>) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/fixtures/tokenizers/tiny-llama");
    let hub = Hub::new(HubConfig { offline: true, ..HubConfig::new("cache") });
    let tokenizer = Tokenizer::load(folder, &hub).expect("a tokenizer");
    let options = DatasetOptions {
        name: DatasetName::RandomWords,
        random_range_ratio: 1.0,
        ..DatasetOptions::default()
    };
    bencher.bench(|| load(&options, &tokenizer, &hub, &mut Draws::new(42)).expect("prompts"));
}
