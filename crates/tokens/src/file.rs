//! `tokenizer.json`, read fast.

use tokenizers::models::bpe::BPE;
use tokenizers::{
    DecoderWrapper, NormalizerWrapper, PostProcessorWrapper, PreTokenizerWrapper, Tokenizer,
    TokenizerImpl,
};

/// A tokenizer whose model is known beforehand.
type OfBpe = TokenizerImpl<
    BPE,
    NormalizerWrapper,
    PreTokenizerWrapper,
    PostProcessorWrapper,
    DecoderWrapper,
>;

/// Reads a `tokenizer.json`.
///
/// To find out which model a file holds, the tokenizers crate makes a JSON tree of it first, which
/// for a vocabulary of 128 000 takes most of the time. Nearly every file holds a BPE, so that is
/// tried first; what it refuses is read, or refused, as ever.
pub(crate) fn read(json: &[u8]) -> Result<Tokenizer, tokenizers::Error> {
    let read = || OfBpe::from_bytes(json).map(Into::into).or_else(|_| Tokenizer::from_bytes(json));
    // The crate panics where a merge is longer than any token (0.23.2).
    let read = std::panic::catch_unwind(read);
    read.unwrap_or_else(|_| Err("its parts do not fit together".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// The tokenizer crate's own reading is the measure, of errors too.
    fn check(json: &str) {
        let of = |read: Result<Tokenizer, tokenizers::Error>| {
            read.and_then(|tokenizer| tokenizer.to_string(false)).map_err(|e| e.to_string())
        };
        assert_eq!(of(read(json.as_bytes())), of(Tokenizer::from_bytes(json)), "{json}");
    }

    #[test]
    fn what_is_read_is_what_the_crate_reads() {
        let file = include_str!("../../../tests/fixtures/tokenizers/tiny-llama/tokenizer.json");
        let whole: Value = serde_json::from_str(file).unwrap();
        check(file);
        let with = |model: Value| {
            let mut file = whole.clone();
            file["model"] = model;
            file.to_string()
        };
        let (a, ab) = (json!({"a": 0, "b": 1}), json!({"a": 0, "b": 1, "ab": 2}));
        for model in [
            json!({"type": "BPE", "vocab": ab, "merges": ["a b"]}),
            json!({"type": "BPE", "vocab": ab, "merges": [["a", "b"]]}),
            json!({"vocab": ab, "merges": ["a b"]}),
            json!({"vocab": ab, "merges": ["a b"], "no such field": {}}),
            json!({"type": "BPE", "vocab": ab, "merges": ["b a"]}),
            json!({"type": "BPE", "vocab": a, "merges": ["a"]}),
            json!({"type": "BPE", "vocab": a}),
            json!({"type": "WordLevel", "vocab": a, "unk_token": "a"}),
            json!({"type": "WordPiece", "vocab": a, "unk_token": "a",
                "continuing_subword_prefix": "##", "max_input_chars_per_word": 9}),
            json!({"type": "Unigram", "unk_id": 0, "vocab": [["a", -1.5]], "byte_fallback": false}),
            json!({"type": "none", "vocab": a}),
            Value::Null,
        ] {
            check(&with(model));
        }
        let long = with(json!({"type": "BPE", "vocab": a, "merges": ["a b"]}));
        assert!(read(long.as_bytes()).is_err());
        for broken in ["", "{", "{}", &file[..file.len() / 2]] {
            check(broken);
        }
    }
}
