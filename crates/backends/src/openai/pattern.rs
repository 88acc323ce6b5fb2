//! Frames that differ from the last one in their text alone.
//!
//! A server that streams plain text sends the same bytes again and again around each piece of it.
//! Such a frame need not be read: what stands around the text is compared, the text is checked to be
//! a plain string, and the rest is known from the frame that was read. A JSON string without quotes,
//! backslashes and control characters ends where its closing quote stands, so the two documents
//! differ in that string and nowhere else.

use super::frame::Frame;
use memchr::memchr2;
use std::borrow::Cow;
use std::hint::black_box;

/// Frames in a row that were learned in vain before learning is given up.
const PATIENCE: u8 = 8;

/// What stood around the text of the last plain frame.
#[derive(Debug, Default)]
pub(crate) struct Pattern {
    before: Vec<u8>,
    after: Vec<u8>,
    choice: u32,
    /// Frames learned since one was recognised.
    in_vain: u8,
}

impl Pattern {
    /// Looks at the memory that the next frame will need.
    pub(crate) fn near(&self) {
        for line in self.before.chunks(64).chain(self.after.chunks(64)) {
            black_box(line.first());
        }
    }

    /// The choice and the text of a frame that is the last one with another text.
    pub(crate) fn recognise<'a>(&mut self, data: &'a [u8]) -> Option<(u32, &'a str)> {
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        // Nothing was learned yet, or the frame has no text.
        if self.before.is_empty() || text.is_empty() {
            return None;
        }
        let plain = memchr2(b'"', b'\\', text).is_none() && text.iter().all(|byte| *byte >= b' ');
        let text = std::str::from_utf8(text).ok().filter(|_| plain)?;
        self.in_vain = 0;
        Some((self.choice, text))
    }

    /// Takes down what stands around the text of a frame, if text is all that it brings.
    pub(crate) fn learn(&mut self, data: &[u8], frame: &Frame<'_>) {
        if self.in_vain == PATIENCE {
            return;
        }
        let Some((choice, text)) = only_text(frame) else { return };
        // A piece of `data` itself: its place is the distance of the two.
        let from = (text.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
        let to = from.wrapping_add(text.len());
        let quote = |at: usize| data.get(at) == Some(&b'"');
        if from > to || !quote(from.wrapping_sub(1)) || !quote(to) {
            return;
        }
        let (Some(before), Some(after)) = (data.get(..from), data.get(to..)) else { return };
        self.before.clear();
        self.before.extend_from_slice(before);
        self.after.clear();
        self.after.extend_from_slice(after);
        self.choice = choice;
        self.in_vain += 1;
    }
}

/// The choice and the text of a frame that brings one piece of text and nothing else.
fn only_text<'a>(frame: &'a Frame<'_>) -> Option<(u32, &'a str)> {
    let mut choices = frame.choices.iter();
    let (Some(choice), None) = (choices.next(), choices.next()) else { return None };
    let usage = &frame.usage;
    let counts = [usage.prompt.0, usage.completion.0, usage.details.cached.0];
    let messages = [&choice.delta, &choice.message];
    let brings_more = frame.error.0
        || counts.iter().any(Option::is_some)
        || !frame.extension.is_empty()
        || choice.meta.accept_length.0.is_some()
        || !choice.finish.reason().is_empty()
        || messages.iter().any(|message| message.has_other_output());
    if brings_more {
        return None;
    }
    let texts = messages.map(|m| [&m.content.0, &m.reasoning_content.0, &m.reasoning.0]);
    let mut filled =
        texts.into_iter().flatten().chain([&choice.text.0]).filter(|text| !text.is_empty());
    match (filled.next(), filled.next()) {
        (Some(Cow::Borrowed(text)), None) => Some((choice.index.0.unwrap_or(0), text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::decoder::Reading;
    use crate::openai::OpenAiReading;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use servebench_core::{Reply, Stamp};

    /// Reads frames with one reading, or each with a pattern that knows nothing.
    fn read(frames: &[Vec<u8>], forgetful: bool) -> Reply {
        let (mut reading, mut reply) = (OpenAiReading::default(), Reply::default());
        for (at, frame) in frames.iter().enumerate() {
            if forgetful {
                reading.pattern = super::Pattern::default();
            }
            if reading.frame(Stamp(at as u64), frame, &mut reply).is_err() {
                break;
            }
        }
        reply
    }

    fn chat(delta: &Value, created: u32) -> Value {
        json!({"id": "x", "created": created, "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    }

    fn frame() -> impl Strategy<Value = Vec<u8>> {
        let text = prop_oneof![
            5 => "[a-zé🙂 ]{1,5}",
            1 => Just(String::new()),
            1 => "[\"\\\\\\n\u{1}a]{1,4}",
        ];
        let value = prop_oneof![
            6 => (text.clone(), 0..2_u32).prop_map(|(t, c)| chat(&json!({"content": t}), c)),
            2 => text.clone().prop_map(|t| chat(&json!({"reasoning_content": t}), 0)),
            1 => text.clone().prop_map(|t| chat(&json!({"reasoning": t, "content": t}), 0)),
            2 => (text, 0..2_u32).prop_map(|(t, i)| json!({"choices": [{"index": i, "text": t}]})),
            1 => (0..9_u32).prop_map(|n| json!({"choices": [{"index": 0, "text": "u"}],
                "usage": {"completion_tokens": n}})),
            1 => Just(json!({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})),
            1 => Just(json!({"error": {"message": "late"}})),
        ];
        value.prop_map(|value| value.to_string().into_bytes())
    }

    proptest! {
        #[test]
        fn a_frame_is_read_alike_whatever_came_before(frames in prop::collection::vec(frame(), 0..30)) {
            prop_assert_eq!(read(&frames, false), read(&frames, true));
        }

        #[test]
        fn bytes_between_a_known_frame_are_read_as_a_whole(middle in prop::collection::vec(any::<u8>(), 0..12)) {
            let known = br#"{"choices":[{"index":0,"text":"a"}]}"#;
            let (before, after) = known.split_at(31);
            let (_, after) = after.split_at(1);
            let frames = [known.to_vec(), known.to_vec(), [before, &middle, after].concat()];
            prop_assert_eq!(read(&frames, false), read(&frames, true));
        }
    }

    #[test]
    fn plain_frames_are_recognised() {
        let mut reading = OpenAiReading::default();
        let mut reply = Reply::default();
        for text in ["a", "b", "é"] {
            let frame = chat(&json!({"content": text}), 0).to_string();
            let known = reading.pattern.recognise(frame.as_bytes()).is_some();
            assert_eq!(known, text != "a", "{text}");
            assert!(reading.frame(Stamp(0), frame.as_bytes(), &mut reply).is_ok());
        }
        assert_eq!((&*reply.text, reply.chunks.len()), ("abé", 3));
    }
}
