//! `random-words`: exact lengths by construction, on every kind of vocabulary that has words.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_datasets::{
    DatasetError, DatasetName, DatasetOptions, Loaded, count_true_lengths, load,
};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::collections::HashSet;
use std::path::Path;

fn hub() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("no/such/cache") })
}

fn fixture(name: &str) -> Tokenizer {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/tokenizers");
    Tokenizer::load(folder.join(name).to_str().unwrap(), &hub()).unwrap()
}

fn tokenizer(parts: &Value) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, parts.to_string()).unwrap();
    Tokenizer::load(path.to_str().unwrap(), &hub()).unwrap()
}

/// The words `aa` to `zz` as a vocabulary writes them, behind some tokens that are no words.
fn vocabulary(others: &[&str], write: impl Fn(&str) -> String) -> Map<String, Value> {
    let letters = || 'a'..='z';
    let words = letters().flat_map(|a| letters().map(move |b| format!("{a}{b}")));
    let pieces = others.iter().map(|&other| other.to_owned()).chain(words.map(|word| write(&word)));
    pieces.enumerate().map(|(id, piece)| (piece, id.into())).collect()
}

/// Words behind `▁`, which the normalizer puts before the text, in a vocabulary of log
/// probabilities.
fn unigram() -> Tokenizer {
    let vocabulary = vocabulary(&["<unk>", "▁", "a", "b"], |word| format!("▁{word}"));
    let scored: Vec<Value> = vocabulary.keys().map(|piece| json!([piece, -5.0])).collect();
    tokenizer(&json!({
        "version": "1.0", "added_tokens": [],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        ]},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": scored, "byte_fallback": false}
    }))
}

/// Words as they are, pieces of words behind `##`.
fn word_piece() -> Tokenizer {
    tokenizer(&json!({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {
            "type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocabulary(&["[UNK]", "a", "##a", "##aa"], str::to_owned)
        }
    }))
}

fn options(num_prompts: usize, len: u32, ratio: f64) -> DatasetOptions {
    DatasetOptions {
        name: DatasetName::RandomWords,
        num_prompts,
        random_input_len: len,
        random_output_len: 5,
        random_range_ratio: ratio,
        ..DatasetOptions::default()
    }
}

fn run(options: &DatasetOptions, tokenizer: &Tokenizer, seed: u32) -> Result<Loaded, DatasetError> {
    load(options, tokenizer, &hub(), &mut Draws::new(seed))
}

fn text(sample: &Sample) -> &str {
    match &sample.prompt {
        Prompt::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_of_vocabulary_gives_exact_lengths() {
    let kinds = [
        ("byte-level BPE", fixture("tiny-llama"), Some(' ')),
        ("unigram behind ▁", unigram(), None),
        ("word pieces", word_piece(), Some(' ')),
        ("bytes", fixture("bytes"), None),
    ];
    for (kind, tokenizer, first) in kinds {
        let loaded = run(&options(40, 50, 0.0), &tokenizer, 1).unwrap();
        let real = count_true_lengths(&loaded.samples, &tokenizer, true).unwrap();
        assert!(loaded.samples.iter().map(|sample| sample.prompt_len).eq(real), "{kind}");
        assert!(loaded.samples.iter().all(|s| s.counted == Counted::Tokenizer), "{kind}");
        assert!(loaded.warnings.is_empty(), "{kind}");
        let prompt = text(&loaded.samples[0]);
        assert_eq!(prompt.chars().next().filter(|&c| c == ' '), first, "{kind}: {prompt}");
        assert!(prompt.bytes().all(|b| b == b' ' || b.is_ascii_lowercase()), "{kind}: {prompt}");
    }
}

#[test]
fn lengths_count_the_special_tokens_that_a_server_adds() {
    let mut parts = json!({
        "version": "1.0", "pre_tokenizer": {"type": "BertPreTokenizer"},
        "added_tokens": [{
            "id": 0, "content": "[CLS]", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true
        }],
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [0], "tokens": ["[CLS]"]}}
        },
        "model": {"type": "WordLevel", "unk_token": "[CLS]"}
    });
    parts["model"]["vocab"] = vocabulary(&["[CLS]"], str::to_owned).into();
    let tokenizer = tokenizer(&parts);
    let loaded = run(&options(9, 30, 1.0), &tokenizer, 1).unwrap();
    let real = count_true_lengths(&loaded.samples, &tokenizer, true).unwrap();
    assert_eq!(real, [30; 9]);
    let ids = DatasetOptions { tokenize_prompt: true, ..options(9, 30, 1.0) };
    for sample in run(&ids, &tokenizer, 1).unwrap().samples {
        assert_eq!((sample.prompt_len, sample.counted), (30, Counted::Exact));
        let Prompt::Ids(ids) = sample.prompt else { panic!("ids were asked for") };
        assert!(ids.len() == 30 && !ids.contains(&0));
    }
}

#[test]
fn prompts_share_no_beginning_but_by_chance() {
    let loaded = run(&options(400, 30, 1.0), &fixture("tiny-llama"), 7).unwrap();
    let words = |sample: &Sample, n: usize| {
        text(sample).split(' ').skip(1).take(n).collect::<Vec<_>>().join(" ")
    };
    let distinct = |n: usize| loaded.samples.iter().map(|s| words(s, n)).collect::<HashSet<_>>();
    // Of n words drawn from w, w(1 − (1 − 1/w)ⁿ) differ: the vocabulary has some hundred words.
    let vocabulary: HashSet<&str> =
        loaded.samples.iter().flat_map(|sample| text(sample).split(' ').skip(1)).collect();
    let w = vocabulary.len() as f64;
    assert!(w > 300.0, "{w} words");
    let expected = w * (1.0 - (1.0 - 1.0 / w).powi(400));
    let firsts = distinct(1).len() as f64;
    // The variance is below the mean number of words met.
    assert!((firsts - expected).abs() < 5.0 * expected.sqrt(), "{firsts} of {expected}");
    assert_eq!(distinct(4).len(), 400);
}

#[test]
fn a_vocabulary_without_words_is_refused_with_the_way_out() {
    for name in ["drift", "bos"] {
        let error = run(&options(3, 8, 1.0), &fixture(name), 1).unwrap_err();
        assert!(matches!(error, DatasetError::NoWords { .. }), "{error}");
        assert!(error.to_string().contains("--dataset-name random-ids --exact-lengths"), "{error}");
    }
}

#[test]
fn words_that_merge_with_each_other_are_found_out() {
    // Single letters join to pairs, but not those that stand beside each other in the vocabulary.
    let letters: Vec<char> = ('a'..='z').collect();
    let far = |a: char, b: char| (a as u32).abs_diff(b as u32) > 3;
    let pairs: Vec<(char, char)> = letters
        .iter()
        .flat_map(|&a| letters.iter().map(move |&b| (a, b)))
        .filter(|&(a, b)| far(a, b))
        .collect();
    let pieces = letters.iter().map(char::to_string);
    let pieces = pieces.chain(pairs.iter().map(|(a, b)| format!("{a}{b}")));
    let vocabulary: Map<String, Value> =
        pieces.enumerate().map(|(id, piece)| (piece, id.into())).collect();
    let merges: Vec<String> = pairs.iter().map(|(a, b)| format!("{a} {b}")).collect();
    let merging = tokenizer(&json!({
        "version": "1.0", "added_tokens": [],
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges}
    }));
    let error = run(&options(3, 8, 1.0), &merging, 1).unwrap_err();
    assert!(matches!(error, DatasetError::WordsMerge { checked: 203, wrong: 50.., .. }), "{error}");
    assert!(error.to_string().contains("--dataset-name random-ids --exact-lengths"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_length_is_exact(seed: u32, len in 1..300_u32, ratio in 0.0..=1.0_f64, n in 1..20_usize) {
        let tokenizer = fixture("bytes");
        let loaded = run(&options(n, len, ratio), &tokenizer, seed).unwrap();
        let shortest = ((f64::from(len) * ratio) as u32).max(1);
        let real = count_true_lengths(&loaded.samples, &tokenizer, true).unwrap();
        prop_assert_eq!(loaded.samples.len(), n);
        for (sample, real) in loaded.samples.iter().zip(real) {
            prop_assert_eq!(sample.prompt_len, real);
            prop_assert!((shortest..=len).contains(&real));
        }
    }

    #[test]
    fn any_number_of_threads_makes_the_same_prompts(seed: u32, threads in 1..=8_usize) {
        let tokenizer = unigram();
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let there = pool.install(|| run(&options(33, 20, 0.1), &tokenizer, seed)).unwrap();
        let here = run(&options(33, 20, 0.1), &tokenizer, seed).unwrap();
        prop_assert_eq!(there, here);
    }
}
