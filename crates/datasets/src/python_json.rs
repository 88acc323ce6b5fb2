//! JSON as Python's `json.dumps` writes it: blanks after `,` and `:`, nothing but ASCII.

use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// The text of `value`.
pub(crate) fn write(value: &Value) -> String {
    let mut bytes = Vec::new();
    let written = value.serialize(&mut Serializer::with_formatter(&mut bytes, Dumps));
    debug_assert!(written.is_ok(), "a value can be written to memory");
    String::from_utf8(bytes).unwrap_or_default()
}

struct Dumps;

impl Formatter for Dumps {
    fn begin_array_value<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, to: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, to: &mut W) -> io::Result<()> {
        to.write_all(b": ")
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        to: &mut W,
        text: &str,
    ) -> io::Result<()> {
        let mut plain = CompactFormatter;
        for c in text.chars() {
            if c.is_ascii() && c != '\u{7f}' {
                plain.write_string_fragment(to, c.encode_utf8(&mut [0; 4]))?;
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(to, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_is_written_as_in_python() {
        let value =
            json!({"a": [1, 2.5, null, true], "é–☂🙂": "\"\\\n\u{1}\u{7f}", "c": {}, "d": []});
        let want = r#"{"a": [1, 2.5, null, true], "\u00e9\u2013\u2602\ud83d\ude42": "\"\\\n\u0001\u007f", "c": {}, "d": []}"#;
        assert_eq!(write(&value), want);
    }
}
