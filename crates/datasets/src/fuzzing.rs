//! Bodies of the fuzz targets: any bytes in, no panic, and what comes out keeps the promises.

use crate::corpus::{TextKey, json_lines, share_gpt};
use crate::skips::Skips;
use crate::{DatasetName, DatasetOptions, conversations, random};
use servebench_core::random::Draws;
use servebench_tokens::Tokenizer;

/// Bytes as a ShareGPT file, through `sharegpt` and `random`.
pub fn share_gpt_json(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let tokenizer = Tokenizer::byte_level();
    let mut skips = Skips::default();
    let Ok(found) = share_gpt(text, &mut skips) else { return };
    sample(found.clone(), TextKey::Value, &tokenizer);
    let options = DatasetOptions {
        name: DatasetName::Random,
        num_prompts: 4,
        random_input_len: 9,
        ..DatasetOptions::default()
    };
    let mut draws = Draws::new(1);
    let lengths = random::Lengths::draw(&options, &tokenizer, &mut draws.numpy);
    let made = random::from_corpus(found, &lengths, &options, &tokenizer, &mut draws, &mut skips);
    let samples = made.unwrap_or_default();
    assert!(samples.iter().all(|sample| (1..=9).contains(&sample.prompt_len)), "a wrong length");
}

/// Bytes as a custom JSONL file.
pub fn custom_json_lines(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let found = json_lines(text, &mut Skips::default());
    sample(found, TextKey::ContentOrValue, &Tokenizer::byte_level());
}

fn sample(found: Vec<crate::corpus::Conversation<'_>>, key: TextKey, tokenizer: &Tokenizer) {
    let options = DatasetOptions { num_prompts: 3, ..DatasetOptions::default() };
    let (mut draws, mut skips) = (Draws::new(1), Skips::default());
    let rows = found.len();
    let made = conversations::sample(found, key, &options, tokenizer, &mut draws, &mut skips);
    let samples = made.unwrap_or_default();
    assert!(samples.len() <= rows.min(3), "more samples than rows");
    assert!(samples.iter().all(|s| s.prompt_len >= 2 && s.output_len >= 2), "a short sample");
}
