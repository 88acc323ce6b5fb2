//! Encoding, decoding and counting, and what `tokenizer_config.json` changes about them.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use serde_json::{Value, json};
use servebench_tokens::{Hub, HubConfig, Tokenizer, TokensError};

/// The pair-merging tokenizer whose ids do not survive decoding and encoding.
fn drift() -> Value {
    json!({
        "version": "1.0", "added_tokens": [], "decoder": {"type": "Fuse"},
        "model": {
            "type": "BPE", "vocab": {"a": 0, "b": 1, "ba": 2, "ab": 3},
            "merges": ["b a", "a b"]
        }
    })
}

fn hub() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("nowhere") })
}

fn load(tokenizer: &Value, config: &Value) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    Tokenizer::load(folder.path().to_str().unwrap(), &hub()).unwrap()
}

#[test]
fn the_byte_tokenizer_has_a_token_per_byte() {
    let bytes = Tokenizer::byte_level();
    assert_eq!(bytes.vocab_size(), 256);
    assert_eq!(bytes.vocabulary_ids(), (0..256).collect::<Vec<u32>>());
    assert_eq!(bytes.count("hi", true).unwrap(), 2);
    assert_eq!(bytes.encode("é\n\0", true).unwrap(), [0xc3, 0xa9, 0x0a, 0]);
    assert_eq!(bytes.decode(&[200, 201], false).unwrap(), "\u{fffd}\u{fffd}");
    assert_eq!(bytes.num_special_tokens_to_add(), 0);
    assert!(bytes.special_ids().is_empty() && bytes.bos_token().is_none());
}

#[test]
fn ids_drift_as_in_python() {
    let drift = load(&drift(), &json!({}));
    let there = |ids: &[u32]| drift.decode(ids, false).unwrap();
    let back = |text: &str| drift.encode(text, true).unwrap();
    for (ids, text, again) in [
        (&[0, 1, 2, 3][..], "abbaab", &[3, 2, 3][..]),
        (&[3, 3], "abab", &[0, 2, 1]),
        (&[0, 1, 2, 3, 0, 1, 2, 3], "abbaababbaab", &[3, 2, 0, 2, 1, 2, 3]),
        (&[2, 3, 0, 1], "baabab", &[2, 0, 2, 1]),
    ] {
        assert_eq!(there(ids), text);
        assert_eq!(back(text), again);
    }
    assert_eq!(there(&[0, 9, 1]), "ab", "an id without a token is nothing");
    assert!(back("z").is_empty());
}

#[test]
fn counts_of_many_texts_are_the_counts_of_each() {
    let bytes = Tokenizer::byte_level();
    let texts: Vec<String> = (0..100).map(|n| "x".repeat(n)).collect();
    assert_eq!(bytes.count_batch(&texts, true).unwrap(), (0..100).collect::<Vec<u32>>());
}

#[test]
fn special_tokens_are_added_kept_and_skipped() {
    let mut tokenizer = drift();
    tokenizer["added_tokens"] = json!([{
        "id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": false, "special": true
    }]);
    tokenizer["post_processor"] = json!({
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}
    });
    let bos = load(&tokenizer, &json!({}));
    assert_eq!(bos.num_special_tokens_to_add(), 1);
    assert_eq!((bos.vocab_size(), bos.vocabulary_ids().len()), (4, 5));
    assert_eq!((bos.special_ids(), bos.added_ids()), (vec![4], vec![4]));
    assert_eq!(bos.encode("ab", true).unwrap(), [4, 3]);
    assert_eq!(bos.encode("ab", false).unwrap(), [3]);
    assert_eq!(bos.encode("a<s>b", false).unwrap(), [0, 4, 1]);
    assert_eq!(bos.decode(&[4, 3], false).unwrap(), "<s>ab");
    assert_eq!(bos.decode(&[4, 3], true).unwrap(), "ab");

    // The configuration has the last word on what is added.
    let quiet = load(&tokenizer, &json!({"bos_token": "<s>", "add_bos_token": false}));
    assert_eq!(quiet.encode("ab", true).unwrap(), [3]);
    let end =
        json!({"bos_token": "<s>", "eos_token": "b", "add_bos_token": true, "add_eos_token": true});
    let both = load(&tokenizer, &end);
    assert_eq!(both.encode("a", true).unwrap(), [4, 0, 1]);
    assert_eq!(both.num_special_tokens_to_add(), 2);
    let nameless = load(&tokenizer, &json!({"add_bos_token": true}));
    assert_eq!(nameless.encode("a", true).unwrap(), [0]);
}

#[test]
fn special_tokens_of_the_configuration_are_known() {
    let tokenizer = load(&drift(), &json!({"pad_token": "<pad>", "eos_token": {"content": "ab"}}));
    assert_eq!(tokenizer.special_ids(), [3, 4]);
    assert_eq!(tokenizer.vocab_size(), 4);
    assert_eq!(tokenizer.encode("a<pad>b", true).unwrap(), [0, 4, 1]);
    assert_eq!(tokenizer.eos_token(), Some("ab"));
}

#[test]
fn truncation_and_padding_of_the_file_are_off() {
    let mut tokenizer = drift();
    tokenizer["truncation"] = json!({
        "direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0
    });
    tokenizer["padding"] = json!({
        "strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "a"
    });
    assert_eq!(load(&tokenizer, &json!({})).count("bbbbb", true).unwrap(), 5);
}

#[test]
fn spaces_are_cleaned_where_python_cleans_them() {
    let words = json!({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "Whitespace"},
        "model": {"type": "WordLevel", "vocab": {"a": 0, ".": 1, "[UNK]": 2}, "unk_token": "[UNK]"}
    });
    let asked = json!({"clean_up_tokenization_spaces": true});
    assert_eq!(load(&words, &asked).decode(&[0, 1], false).unwrap(), "a.");
    assert_eq!(load(&words, &json!({})).decode(&[0, 1], false).unwrap(), "a .");
    let mut pairs = drift();
    pairs["model"]["vocab"] = json!({"a": 0, " .": 1});
    pairs["model"]["merges"] = json!([]);
    assert_eq!(load(&pairs, &asked).decode(&[0, 1], false).unwrap(), "a .");
}

#[test]
fn names_that_lead_nowhere_are_errors() {
    let fail = |name: &str| Tokenizer::load(name, &hub()).unwrap_err();
    assert!(matches!(fail("./no/such/folder"), TokensError::NoSuchName { .. }));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    assert!(matches!(fail(&path("")), TokensError::NotFast { .. }));
    std::fs::write(path("spiece.model"), "x").unwrap();
    assert!(fail(&path("spiece.model")).to_string().contains("only fast tokenizers"));
    std::fs::write(path("tokenizer.json"), "{").unwrap();
    let error = fail(&path("tokenizer.json"));
    assert!(matches!(error, TokensError::Load { .. }));
    assert!(error.to_string().contains("tokenizer.json"));
    std::fs::write(path("tokenizer.json"), drift().to_string()).unwrap();
    std::fs::write(path("tokenizer_config.json"), "[]").unwrap();
    assert!(matches!(fail(&path("")), TokensError::Config { .. }));
}

#[test]
fn the_path_of_the_file_is_a_name_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.json");
    std::fs::write(&path, drift().to_string()).unwrap();
    let tokenizer = Tokenizer::load(path.to_str().unwrap(), &hub()).unwrap();
    assert_eq!(tokenizer.count("abba", false).unwrap(), 2);
}

proptest! {
    #[test]
    fn the_byte_tokenizer_loses_nothing(text in any::<String>()) {
        let bytes = Tokenizer::byte_level();
        let ids = bytes.encode(&text, true).unwrap();
        prop_assert!(ids.iter().map(|&id| id as u8).eq(text.bytes()));
        prop_assert_eq!(bytes.decode(&ids, false).unwrap(), text);
    }

    #[test]
    fn any_ids_decode(ids in prop::collection::vec(any::<u32>(), 0..50)) {
        Tokenizer::byte_level().decode(&ids, false).unwrap();
    }
}
