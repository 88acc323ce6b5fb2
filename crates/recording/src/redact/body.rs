//! The text of a body, told from what stands around it.

use super::json;
use std::hash::{BuildHasher, Hasher, RandomState};

/// What text is replaced by.
#[derive(Clone, Debug)]
pub(super) enum Filler {
    /// Always the same letter.
    Plain,
    /// Letters that depend on all of the text before them: texts that begin alike are filled alike, as
    /// decoders want it that take repeated text for what it repeats. The key is forgotten.
    ByPrefix(RandomState),
}

/// The letters of one text, one after the other.
#[derive(Clone)]
pub(super) struct Letters<'a> {
    filler: &'a Filler,
    seen: Option<<RandomState as BuildHasher>::Hasher>,
}

impl Filler {
    pub(super) fn plain() -> Self {
        Self::Plain
    }

    pub(super) fn by_prefix() -> Self {
        Self::ByPrefix(RandomState::new())
    }

    pub(super) fn letters(&self) -> Letters<'_> {
        Letters { filler: self, seen: None }
    }
}

impl Letters<'_> {
    /// The letter in place of `text`.
    pub(super) fn next(&mut self, text: &[u8]) -> u8 {
        let Filler::ByPrefix(key) = self.filler else { return b'x' };
        let seen = self.seen.get_or_insert_with(|| key.build_hasher());
        seen.write(text);
        b'a' + (seen.finish() % 26) as u8
    }
}

/// The body with filler in place of its text, byte for byte as long.
pub(super) fn redact(body: &[u8], filler: &Filler) -> Vec<u8> {
    let mut bytes = body.to_vec();
    let begins_as_json = body.trim_ascii_start().first().is_some_and(|byte| b"{[".contains(byte));
    if begins_as_json && json::fill(&mut bytes, filler).is_some() {
        return bytes;
    }
    bytes.copy_from_slice(body);
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    for line in bytes.split_mut(is_end) {
        redact_line(line, filler);
    }
    bytes
}

/// A line of an event stream.
fn redact_line(line: &mut [u8], filler: &Filler) {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return blank(line) };
    let (name, value) = line.split_at_mut(colon);
    let value = &mut value[1..];
    match &*name {
        b"data" if value.trim_ascii() == b"[DONE]" => {}
        b"data" => redact_data(value, filler),
        // Numbers and words of the protocol.
        b"event" if is_word(value.trim_ascii()) => {}
        b"retry" if value.trim_ascii().iter().all(u8::is_ascii_digit) => {}
        b"event" | b"retry" | b"id" | b"" => blank(value),
        _ => redact_data(line, filler),
    }
}

fn redact_data(data: &mut [u8], filler: &Filler) {
    let before = data.to_vec();
    if json::fill(data, filler).is_none() {
        data.copy_from_slice(&before);
        blank(data);
    }
}

/// Replaces all that is no white space, but leaves the brace by which JSON is known.
fn blank(bytes: &mut [u8]) {
    let visible = bytes.iter_mut().filter(|byte| !byte.is_ascii_whitespace());
    for (place, byte) in visible.enumerate() {
        if place > 0 || *byte != b'{' {
            *byte = b'x';
        }
    }
}

/// A word that says how, not what.
pub(super) fn is_word(text: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    text.len() <= 40 && text.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plain(body: &str) -> String {
        String::from_utf8(redact(body.as_bytes(), &Filler::plain())).unwrap_or_default()
    }

    #[test]
    fn text_goes_and_the_rest_stays() {
        for (body, want) in [
            (
                r#"data: {"id":"a1","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi\n \"é\u00e9"},"finish_reason":"stop"}],"usage":{"completion_tokens":12}}"#,
                r#"data: {"id":"xx","choices":[{"index":0,"delta":{"role":"assistant","content":"xx\nx\n·\u00b7"},"finish_reason":"stop"}],"usage":{"completion_tokens":12}}"#,
            ),
            ("data: [DONE]", "data: [DONE]"),
            (
                ": a secret\n\nevent: error\ndata: it fell over",
                ": x xxxxxx\n\nevent: error\ndata: xx xxxx xxxx",
            ),
            (r#"{"output_ids":[12,-5.0e7],"n":3}"#, r#"{"output_ids":[11,-1.1e1],"n":3}"#),
            (
                r#"{"logprobs":{"top_logprobs":[{" the":-0.25}]},"created":17}"#,
                r#"{"logprobs":{"xxxxxxxxxxxx":[{"xxxx":-1.11}]},"created":17}"#,
            ),
            (r#"data: {"text":"cut"#, "data: {xxxxxxxxxxx"),
            (
                r#"{"finish_reason":{"type":"stop","matched":"</s>"},"object":"a secret sentence"}"#,
                r#"{"finish_reason":{"type":"stop","matched":"xxxx"},"object":"xxxxxxxxxxxxxxxxx"}"#,
            ),
            (
                r#"{"a":NaN,"b":-Infinity,"c":null,"d":true}"#,
                r#"{"a":NaN,"b":-Infinity,"c":null,"d":true}"#,
            ),
        ] {
            assert_eq!(plain(body), want);
        }
    }

    #[test]
    fn texts_that_begin_alike_are_filled_alike() {
        let filler = Filler::by_prefix();
        let fill = |text: &str| redact(format!("{{\"text\":\"{text}\"}}").as_bytes(), &filler);
        let (short, long, other) = (fill("once upon"), fill("once upon a"), fill("Once upon"));
        assert_eq!(short[..short.len() - 2], long[..short.len() - 2]);
        assert_ne!(short, other);
        assert!(!long.windows(4).any(|window| window == b"once"));
    }

    proptest! {
        #[test]
        fn nothing_changes_its_length(bytes: Vec<u8>, lines in "[ -~\n]{0,60}", by_prefix: bool) {
            let filler = if by_prefix { Filler::by_prefix() } else { Filler::plain() };
            for body in [&bytes[..], lines.as_bytes()] {
                prop_assert_eq!(redact(body, &filler).len(), body.len());
            }
        }

        #[test]
        fn what_was_json_is_json_and_says_nothing(text in "\\PC{0,30}", more in "[a-z]{5,9}") {
            let secret = format!("{text}{more}");
            let value = serde_json::json!({"choices": [{"text": secret}, [secret]], "n": 1});
            let filled = redact(value.to_string().as_bytes(), &Filler::plain());
            let filled = String::from_utf8(filled).unwrap();
            let read: serde_json::Value = serde_json::from_str(&filled).unwrap();
            let told = read["choices"][0]["text"].as_str().unwrap();
            prop_assert_eq!(told.len(), secret.len());
            prop_assert!(!filled.contains(&more) || more.bytes().all(|byte| byte == b'x'));
        }
    }
}
