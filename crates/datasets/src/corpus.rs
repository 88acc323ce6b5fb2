//! Conversations in files: found fast, decoded only when used.

use crate::DatasetError;
use crate::lines::{numbered, refuse_foreign};
use crate::skips::{At, Skip, Skips};
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use std::path::Path;

/// The first two turns of a conversation, not yet decoded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversation<'a> {
    pub(crate) at: At,
    turns: [&'a RawValue; 2],
}

/// Where the text of a turn is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKey {
    /// In `value` (ShareGPT).
    Value,
    /// In `content`, else in `value`, else it is empty (custom).
    ContentOrValue,
}

impl Conversation<'_> {
    /// The text of turn 0 or 1; `None` where there is none that could be sent.
    pub(crate) fn text(&self, turn: usize, key: TextKey) -> Option<String> {
        let fields = fields(self.turns[turn], ["content", "value"])?;
        let raw = match key {
            TextKey::Value => fields[1]?,
            TextKey::ContentOrValue => match fields[0].or(fields[1]) {
                Some(raw) => raw,
                None => return Some(String::new()),
            },
        };
        serde_json::from_str(raw.get()).ok()
    }
}

/// Reads a file as text, less a byte-order mark.
pub(crate) fn read(path: &Path) -> Result<String, DatasetError> {
    let bytes = std::fs::read(path)
        .map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    refuse_foreign(path, &bytes)?;
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let line = before.split(|&byte| byte == b'\n').count();
        DatasetError::NotText { path: path.to_owned(), line, at }
    })?;
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    Ok(text)
}

/// The conversations of a ShareGPT file, an array of objects, in its order.
///
/// Nothing but the structure is read here: the corpus has hundreds of megabytes, of which a run
/// uses a few. On a mistake, the error comes with the number of rows before it.
pub(crate) fn share_gpt<'a>(
    text: &'a str,
    skips: &mut Skips,
) -> Result<Vec<Conversation<'a>>, (usize, serde_json::Error)> {
    let mut rows = 0;
    let mut found = Vec::new();
    let visitor = Each(|row: &'a RawValue| {
        rows += 1;
        let at = At::Row(rows);
        match conversation(row, at) {
            Some(conversation) => found.push(conversation),
            None => skips.note(Skip::FewTurns, at),
        }
    });
    let mut reader = serde_json::Deserializer::from_str(text);
    let result = reader.deserialize_seq(visitor).and_then(|()| reader.end());
    match result {
        Ok(()) => Ok(found),
        Err(error) => Err((rows, error)),
    }
}

/// The conversations of a JSONL text, one object a line, in its order. Blank lines do not count.
pub(crate) fn json_lines<'a>(text: &'a str, skips: &mut Skips) -> Vec<Conversation<'a>> {
    let mut found = Vec::new();
    for (number, line) in numbered(text) {
        let at = At::Line(number);
        match serde_json::from_str(line).map(|row| conversation(row, at)) {
            Ok(Some(conversation)) => found.push(conversation),
            Ok(None) => skips.note(Skip::FewTurns, at),
            Err(_) => skips.note(Skip::NoJson, at),
        }
    }
    found
}

/// The first two turns of a row that has as many.
fn conversation(row: &RawValue, at: At) -> Option<Conversation<'_>> {
    let [conversations, conversation] = fields(row, ["conversations", "conversation"])?;
    let list = conversations.or(conversation)?;
    let mut turns = Vec::with_capacity(2);
    let first_two = FirstTwo(&mut turns);
    serde_json::Deserializer::from_str(list.get()).deserialize_seq(first_two).ok()?;
    turns.try_into().ok().map(|turns| Conversation { at, turns })
}

/// Two fields of an object, `None` if `raw` is no object. Of a field that comes twice, the last
/// counts, as in Python.
fn fields<'a>(raw: &'a RawValue, names: [&str; 2]) -> Option<[Option<&'a RawValue>; 2]> {
    serde_json::Deserializer::from_str(raw.get()).deserialize_map(Fields(names)).ok()
}

struct Each<F>(F);

impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of conversations")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut rows: A) -> Result<(), A::Error> {
        while let Some(row) = rows.next_element()? {
            (self.0)(row);
        }
        Ok(())
    }
}

struct FirstTwo<'v, 'a>(&'v mut Vec<&'a RawValue>);

impl<'de> Visitor<'de> for FirstTwo<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of turns")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut turns: A) -> Result<(), A::Error> {
        for _ in 0..2 {
            match turns.next_element()? {
                Some(turn) => self.0.push(turn),
                None => return Err(A::Error::custom("fewer than two turns")),
            }
        }
        while turns.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

struct Fields<'n>([&'n str; 2]);

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = [Option<&'de RawValue>; 2];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; 2];
        while let Some(key) = entries.next_key::<Key<'de>>()? {
            match self.0.iter().position(|name| *name == key.0) {
                Some(at) => found[at] = Some(entries.next_value()?),
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(found)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(found: &[Conversation<'_>], key: TextKey) -> Vec<Option<String>> {
        found.iter().map(|conversation| conversation.text(0, key)).collect()
    }

    #[test]
    fn odd_rows_are_counted_and_not_fatal() {
        let text = r#"[
            {"id": 1, "conversations": [{"value": "a"}, {"value": "b"}, 3]},
            {"conversation": [{"value": "c"}, {"value": "d"}]},
            {"conversations": [], "conversation": [{"value": "x"}, {"value": "y"}]},
            {"conversations": [{"value": "one turn"}]},
            {"conversations": null}, {}, 7, [], null, "x",
            {"conversations": [{"from": "no value"}, {"value": "b"}]},
            {"conversations": [{"value": 7}, {"value": "b"}]},
            {"conversations": [{"value": "\ud800"}, {"value": "b"}]},
            {"conversations": [[], {"value": "b"}]},
            {"conversations": [{"value": "x", "value": "last"}, {"value": "b"}]}
        ]"#;
        let mut skips = Skips::default();
        let found = share_gpt(text, &mut skips).unwrap();
        let want = [Some("a"), Some("c"), None, None, None, None, Some("last")];
        assert_eq!(prompts(&found, TextKey::Value), want.map(|text| text.map(str::to_owned)));
        assert_eq!(skips.count(Skip::FewTurns), 8);
    }

    #[test]
    fn a_mistake_is_located() {
        let text = "[\n{\"conversations\": []},\n{\"conversations\": [}\n]";
        let (rows, error) = share_gpt(text, &mut Skips::default()).unwrap_err();
        assert_eq!((rows, error.line()), (1, 3));
        for text in ["", "{}", "[", "[] x", "[{}", "nonsense"] {
            assert!(share_gpt(text, &mut Skips::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn lines_are_split_and_trimmed_as_in_python() {
        let row =
            |text: &str| format!("{{\"conversations\": [{{\"content\": \"{text}\"}}, {{}}]}}");
        let lines = format!(
            "\n  {}\t\r\n\u{1c}{}\r{}\u{2028}\nbad\n{}",
            row("a"),
            row("b"),
            row("c\u{2028}c"),
            row("d"),
        );
        let mut skips = Skips::default();
        let found = json_lines(&lines, &mut skips);
        let want = ["a", "b", "c\u{2028}c", "d"].map(|text| Some(text.to_owned()));
        assert_eq!(prompts(&found, TextKey::ContentOrValue), want);
        assert_eq!(skips.to_string(), "1 skipped (1 no JSON from line 4 on)");
    }

    #[test]
    fn content_wins_over_value_and_nothing_is_empty() {
        let text = "{\"conversations\": [{\"content\": \"c\", \"value\": \"v\"}, {\"value\": \"v\"}]}\n\
                    {\"conversations\": [{}, {\"content\": null, \"value\": \"v\"}]}";
        let found = json_lines(text, &mut Skips::default());
        let text = |row: usize, turn| found[row].text(turn, TextKey::ContentOrValue);
        assert_eq!((text(0, 0), text(0, 1)), (Some("c".to_owned()), Some("v".to_owned())));
        assert_eq!((text(1, 0), text(1, 1)), (Some(String::new()), None));
    }
}
