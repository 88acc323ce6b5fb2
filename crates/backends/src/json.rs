//! Reading JSON that other tools accept and a strict parser refuses.
//!
//! Servers are mostly written in Python, whose `json` module writes `NaN` and `Infinity`, torn
//! surrogate pairs and integers of any size. A frame is first read strictly, into the few fields that
//! matter; what fails is repaired and read again, as a [`Value`]. Both ways fill the same types (see
//! [`field`]), so they agree.

pub(crate) mod cursor;
pub(crate) mod field;

use serde::de::IgnoredAny;
use serde_json::Value;

/// Reads a document leniently: repaired first, then any JSON.
pub(crate) fn value(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(&repair(bytes))
}

/// True when `bytes` are one complete JSON document.
pub(crate) fn is_document(bytes: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(bytes).is_ok()
        || serde_json::from_slice::<IgnoredAny>(&repair(bytes)).is_ok()
}

/// Rewrites what only lenient parsers take.
///
/// Outside strings, `NaN`, `Infinity`, `-Infinity` and numbers beyond the range of `f64` become
/// `null`. Inside them, lone surrogate escapes become U+FFFD and control characters are escaped.
/// Invalid UTF-8 becomes U+FFFD. All else stays as it is, valid or not.
pub(crate) fn repair(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut rest = text.as_bytes();
    let mut out = Vec::with_capacity(rest.len());
    while let Some(&byte) = rest.first() {
        let taken = match byte {
            b'"' => repair_string(rest, &mut out),
            b'N' | b'I' | b'-' | b'0'..=b'9' => repair_number(rest, &mut out),
            _ => {
                out.push(byte);
                1
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// Copies a word or number and returns its length in the input.
fn repair_number(rest: &[u8], out: &mut Vec<u8>) -> usize {
    for word in [&b"NaN"[..], b"Infinity", b"-Infinity"] {
        if rest.starts_with(word) {
            out.extend_from_slice(b"null");
            return word.len();
        }
    }
    let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    let length = 1 + rest[1..].iter().take_while(|byte| is_number(byte)).count();
    let number = &rest[..length];
    let value: Option<f64> = std::str::from_utf8(number).ok().and_then(|text| text.parse().ok());
    if value.is_some_and(f64::is_infinite) {
        out.extend_from_slice(b"null");
    } else {
        out.extend_from_slice(number);
    }
    length
}

/// Copies a string that begins at `rest` and returns its length in the input.
fn repair_string(rest: &[u8], out: &mut Vec<u8>) -> usize {
    out.push(b'"');
    let mut at = 1;
    while let Some(&byte) = rest.get(at) {
        match byte {
            b'"' => {
                out.push(byte);
                return at + 1;
            }
            b'\\' => at += repair_escape(&rest[at..], out),
            0..0x20 => {
                out.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
                at += 1;
            }
            _ => {
                out.push(byte);
                at += 1;
            }
        }
    }
    at
}

/// Copies an escape that begins at `rest` and returns its length in the input.
fn repair_escape(rest: &[u8], out: &mut Vec<u8>) -> usize {
    const LONE: &[u8] = b"\\ufffd";
    let follower = || rest.get(6..).and_then(escaped_unit);
    let length = match escaped_unit(rest) {
        Some(0xD800..0xDC00) if matches!(follower(), Some(0xDC00..0xE000)) => 12,
        Some(0xD800..0xE000) => {
            out.extend_from_slice(LONE);
            return 6;
        }
        Some(_) => 6,
        None if matches!(rest.get(1), Some(b'"' | b'\\')) => 2,
        None => 1,
    };
    out.extend_from_slice(&rest[..length]);
    length
}

/// The UTF-16 unit of a `\uXXXX` escape at the start of `rest`.
fn escaped_unit(rest: &[u8]) -> Option<u16> {
    let digits = rest.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| {
        let digit = char::from(digit).to_digit(16)?;
        Some(unit << 4 | digit as u16)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Value {
        value(text.as_bytes()).expect(text)
    }

    #[test]
    fn words_that_are_not_json_become_null() {
        assert_eq!(
            read(r#"{"a":NaN,"b":[Infinity,-Infinity,-1],"c":"NaN, -Infinity"}"#),
            json!({"a": null, "b": [null, null, -1], "c": "NaN, -Infinity"})
        );
    }

    #[test]
    fn numbers_out_of_range_become_null() {
        assert_eq!(
            read("[1e999,-1e999,1e-999,18446744073709551616,0.5]"),
            json!([null, null, 0.0, 2_f64.powi(64), 0.5])
        );
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        assert_eq!(read(r#""\ud83d""#), json!("\u{FFFD}"));
        assert_eq!(read(r#""\ude42\ud83d!""#), json!("\u{FFFD}\u{FFFD}!"));
        assert_eq!(read(r#""\ud83d\ud83d\ude42""#), json!("\u{FFFD}🙂"));
        assert_eq!(read(r#""\uD83D\uDE42 \\ud83d \"""#), json!("🙂 \\ud83d \""));
        assert_eq!(read(r#""\u00e9\n""#), json!("é\n"));
    }

    #[test]
    fn bad_bytes_and_control_characters_are_kept_readable() {
        assert_eq!(value(b"\"a\xFFb\tc\"").expect("repaired"), json!("a\u{FFFD}b\tc"));
    }

    #[test]
    fn deep_nesting_is_an_error_and_no_overflow() {
        let deep = "[".repeat(1 << 20);
        assert!(value(deep.as_bytes()).is_err());
        assert!(!is_document(deep.as_bytes()));
        let closed = format!("{deep}{}", "]".repeat(1 << 20));
        assert!(value(closed.as_bytes()).is_err());
        assert!(is_document(closed.as_bytes()));
    }

    #[test]
    fn broken_input_stays_an_error() {
        for text in ["", "{", "{\"a\"", "\"\\", "\"\\u12", "-", "Nan", "{} {}"] {
            assert!(value(text.as_bytes()).is_err(), "{text}");
        }
    }
}
