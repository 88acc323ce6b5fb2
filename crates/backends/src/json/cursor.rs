//! A forward reader of one JSON document that allocates only for strings with escapes.
//!
//! It is strict about what it returns and easy about what it skips: a skipped value need only have its
//! quotes and brackets in order. Whatever it does not like is `None`, and the caller reads the document
//! again in the slow and lenient way. On valid JSON both ways agree.

use memchr::{memchr2, memchr3};
use std::borrow::Cow;

/// Bytes of a string that are searched eight at a time; behind them a vector search pays. Keys and
/// single tokens are shorter.
const SHORT: usize = 32;

/// A place in a document.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The beginning of `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// `Some` when nothing but white space is left.
    pub(crate) fn end(&mut self) -> Option<()> {
        self.peek().is_none().then_some(())
    }

    /// Steps over `null`, if that is what follows.
    pub(crate) fn null(&mut self) -> bool {
        let is_null = self.peek() == Some(b'n') && self.rest().starts_with(b"null");
        if is_null {
            self.at += 4;
        }
        is_null
    }

    /// True when a string follows.
    pub(crate) fn at_string(&mut self) -> bool {
        self.peek() == Some(b'"')
    }

    /// Reads an object: hands each key to `entry`, which must read or skip its value.
    pub(crate) fn object(
        &mut self,
        mut entry: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.step(b'{')?;
        if self.peek()? == b'}' {
            return self.step(b'}');
        }
        loop {
            let (key, escaped) = self.raw_string()?;
            if escaped {
                return None;
            }
            self.step(b':')?;
            entry(self, key)?;
            if self.peek()? == b'}' {
                return self.step(b'}');
            }
            self.step(b',')?;
        }
    }

    /// Reads a list: calls `item` for each of its items, which must read or skip it.
    pub(crate) fn list(&mut self, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.step(b'[')?;
        if self.peek()? == b']' {
            return self.step(b']');
        }
        loop {
            item(self)?;
            if self.peek()? == b']' {
                return self.step(b']');
            }
            self.step(b',')?;
        }
    }

    /// Reads a string.
    pub(crate) fn string(&mut self) -> Option<Cow<'a, str>> {
        self.peek()?;
        let from = self.at;
        let (inner, escaped) = self.raw_string()?;
        if escaped {
            serde_json::from_str(self.text.get(from..self.at)?).ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inner))
        }
    }

    /// Reads a number without fraction, exponent and sign.
    pub(crate) fn count(&mut self) -> Option<u32> {
        let word = self.word()?;
        (word == "0" || !word.starts_with(['0', '+'])).then(|| word.parse().ok())?
    }

    /// Reads a finite number.
    pub(crate) fn number(&mut self) -> Option<f64> {
        // JSON's grammar is narrower than Rust's: serde_json knows it.
        serde_json::from_str(self.word()?).ok()
    }

    /// Skips a value.
    pub(crate) fn skip(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.raw_string().map(|_| ()),
            b'{' => self.skip_between(b'{', b'}'),
            b'[' => self.skip_between(b'[', b']'),
            _ => self.word().map(|_| ()),
        }
    }

    /// Skips to the bracket that closes the one here. The other kind of bracket need not be counted.
    fn skip_between(&mut self, open: u8, close: u8) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.at += memchr3(b'"', open, close, self.rest())?;
            match self.rest().first()? {
                b'"' => {
                    self.raw_string()?;
                    continue;
                }
                byte if *byte == open => depth += 1,
                _ => depth -= 1,
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }

    /// Reads a number or literal.
    fn word(&mut self) -> Option<&'a str> {
        self.peek()?;
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        let length = self.rest().iter().position(ends).unwrap_or(self.rest().len());
        let word = self.text.get(self.at..self.at + length).filter(|word| !word.is_empty())?;
        self.at += length;
        Some(word)
    }

    /// Steps over a string and returns what is between the quotes, and whether it has escapes.
    fn raw_string(&mut self) -> Option<(&'a str, bool)> {
        self.step(b'"')?;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.at += find_special(self.rest())?;
            if self.rest().first() == Some(&b'"') {
                let inner = self.text.get(from..self.at)?;
                self.at += 1;
                return Some((inner, escaped));
            }
            escaped = true;
            // What follows a backslash is no end of the string. It may be half a character.
            self.at += 2;
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// The next byte behind white space, which is skipped.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\t' | b'\n' | b'\r' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn step(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.at += 1;
        Some(())
    }
}

/// Where the first quote or backslash is.
fn find_special(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < SHORT
        && let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk)
    {
        let found = specials(u64::from_le_bytes(*chunk));
        if found != 0 {
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    memchr2(b'"', b'\\', bytes.get(at..)?).map(|place| at + place)
}

/// Marks the high bit of bytes that are quotes or backslashes. The lowest mark is exact; bytes above it
/// may be marked by a borrow.
const fn specials(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const fn zeros(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & (ONES << 7)
    }
    zeros(word ^ (ONES * b'"' as u64)) | zeros(word ^ (ONES * b'\\' as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cursor(text: &str) -> Cursor<'_> {
        Cursor::new(text)
    }

    fn skips(text: &str) -> bool {
        let mut cursor = cursor(text);
        cursor.skip().is_some() && cursor.end().is_some()
    }

    #[test]
    fn values_are_skipped_whole() {
        for text in [
            "1",
            " -1.5e3 ",
            "null",
            "NaN",
            r#""a\"]}b""#,
            r#"{"a":[1,{"b":"}"}],"c":{}}"#,
            r#"[[],"]",{"x":"["}]"#,
            r#""a long string with more than sixteen bytes and \\""#,
        ] {
            assert!(skips(text), "{text}");
        }
        for text in ["", "[", "{\"a\"", "\"", "\"\\", "\"\\\"", "[\"]", "1 2", "{}}", "\"é\\é"] {
            assert!(!skips(text), "{text}");
        }
    }

    #[test]
    fn numbers_follow_the_grammar_of_json() {
        assert_eq!(cursor("12,").count(), Some(12));
        assert_eq!(cursor("0").count(), Some(0));
        for text in ["", "-1", "+1", "01", "1.0", "1e2", "4294967296", "x", "\"1\""] {
            assert_eq!(cursor(text).count(), None, "{text}");
        }
        assert_eq!(cursor(" 1.5e1]").number(), Some(15.0));
        for text in ["", "NaN", "Infinity", ".5", "1e999", "true", "\"1\""] {
            assert_eq!(cursor(text).number(), None, "{text}");
        }
    }

    #[test]
    fn strings_are_borrowed_unless_escaped() {
        assert_eq!(cursor(r#""plain é""#).string(), Some(Cow::Borrowed("plain é")));
        assert_eq!(cursor(r#""a\n\ud83d\ude42""#).string().as_deref(), Some("a\n🙂"));
        assert_eq!(cursor(r#""\ud83d""#).string(), None);
        assert_eq!(cursor("\"open").string(), None);
    }

    #[test]
    fn specials_are_found_at_every_place() {
        for length in 0..80 {
            let plain = vec![b'!'; length];
            assert_eq!(find_special(&plain), None);
            for place in 0..length {
                for special in *b"\"\\" {
                    let mut bytes = plain.clone();
                    bytes[place..].fill(special);
                    assert_eq!(find_special(&bytes), Some(place), "{length}");
                }
            }
        }
    }

    #[test]
    fn objects_and_lists_are_walked() {
        let mut keys = Vec::new();
        let walked = cursor(r#" { "a" : [ 1 , 2 ] , "b" : { } } "#).object(|cursor, key| {
            keys.push(key);
            cursor.skip()
        });
        assert_eq!((walked, keys), (Some(()), vec!["a", "b"]));
        let mut items = Vec::new();
        let walked = cursor("[1, 2 ,3]").list(|cursor| {
            items.push(cursor.count()?);
            Some(())
        });
        assert_eq!((walked, items), (Some(()), vec![1, 2, 3]));
        for text in [r#"{"a":1,}"#, r#"{"a" 1}"#, r#"{"a":1 "b":2}"#, r#"{"\u0061":1}"#, "[]"] {
            assert_eq!(cursor(text).object(|cursor, _| cursor.skip()), None, "{text}");
        }
        for text in ["[1,]", "[1 2]", "[", "{}"] {
            assert_eq!(cursor(text).list(Cursor::skip), None, "{text}");
        }
    }
}
