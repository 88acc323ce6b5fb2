//! The built-in tokenizer: one token per byte.

use serde_json::{Map, Value, json};

/// A `tokenizer.json` in which every UTF-8 byte is a token whose id is the byte.
pub(crate) fn tokenizer_json() -> Value {
    let vocabulary: Map<String, Value> =
        (0..=u8::MAX).map(|byte| (stand_in(byte).to_string(), Value::from(byte))).collect();
    let byte_level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false
    });
    json!({
        "version": "1.0",
        "added_tokens": [],
        "pre_tokenizer": byte_level,
        "decoder": byte_level,
        "model": { "type": "BPE", "vocab": vocabulary, "merges": [] }
    })
}

/// The character that stands for a byte in byte-level vocabularies: itself where it is printable
/// Latin-1, else the next unused one from U+0100 on.
fn stand_in(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff);
    if printable(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !printable(other)).count();
    char::from_u32(0x100 + before as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}
