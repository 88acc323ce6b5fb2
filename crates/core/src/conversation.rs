//! Conversations: requests that follow from the replies to those before them.

use bytes::Bytes;
use std::sync::Arc;

/// The requests of one conversation, encoded but for the server's replies, which each request
/// repeats as the assistant's messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The body up to and with the bracket that opens the messages.
    pub head: Bytes,
    /// For each turn the messages that it adds: JSON objects with commas between them, at least one.
    pub turns: Vec<Bytes>,
    /// The body from the bracket on that closes the messages.
    pub tail: Bytes,
    /// How turns end that do not end with `tail`: one for each, from the first turn on.
    pub ends: Vec<TurnEnd>,
}

/// What one turn asks for, where the turns of a conversation ask for different things.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TurnEnd {
    /// The body from the bracket on that closes the messages.
    pub tail: Bytes,
    /// Output tokens asked for.
    pub output_len: u32,
}

/// A conversation that is under way.
///
/// ```
/// use servebench_core::{Conversation, Session};
/// use std::sync::Arc;
///
/// let user = |text: &str| format!(r#"{{"role":"user","content":"{text}"}}"#).into();
/// let conversation = Arc::new(Conversation {
///     head: r#"{"messages":["#.into(),
///     turns: vec![user("Hi"), user("Why?")],
///     tail: "]}".into(),
///     ..Conversation::default()
/// });
/// let (mut session, first) = Session::start(&conversation);
/// assert_eq!(first, r#"{"messages":[{"role":"user","content":"Hi"}]}"#);
/// let second = session.next("No \"hi\".").unwrap();
/// assert_eq!(
///     second,
///     r#"{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"No \"hi\"."},{"role":"user","content":"Why?"}]}"#
/// );
/// assert_eq!(session.next("Because."), None);
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    conversation: Arc<Conversation>,
    /// Turns whose messages are in the history.
    turn: usize,
    /// The body so far, without its tail.
    history: Vec<u8>,
}

impl Session {
    /// A session at its first turn, and that turn's body.
    pub fn start(conversation: &Arc<Conversation>) -> (Self, Bytes) {
        let mut session = Self {
            conversation: Arc::clone(conversation),
            turn: 1,
            history: conversation.head.to_vec(),
        };
        session.history.extend(conversation.turns.first().into_iter().flatten());
        let body = session.body();
        (session, body)
    }

    /// The body of the next turn, given the reply to the last one; `None` after the last turn.
    pub fn next(&mut self, reply: &str) -> Option<Bytes> {
        let messages = self.conversation.turns.get(self.turn)?;
        self.turn += 1;
        self.history.extend(br#",{"role":"assistant","content":"#);
        // As JSON a string ends where it began: quoted, with its quotes escaped.
        self.history.extend(serde_json::Value::from(reply).to_string().into_bytes());
        self.history.extend(b"},");
        self.history.extend(messages);
        Some(self.body())
    }

    /// Output tokens that the current turn asks for, where turns differ in that.
    pub fn output_len(&self) -> Option<u32> {
        self.end().map(|end| end.output_len)
    }

    fn end(&self) -> Option<&TurnEnd> {
        self.conversation.ends.get(self.turn.saturating_sub(1))
    }

    fn body(&self) -> Bytes {
        let tail = self.end().map_or(&self.conversation.tail, |end| &end.tail);
        [&self.history[..], tail].concat().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn turns_may_ask_for_different_things() {
        let end = |tail: &'static str, output_len| TurnEnd { tail: tail.into(), output_len };
        let conversation = Arc::new(Conversation {
            head: "[".into(),
            turns: vec!["1".into(), "2".into(), "3".into()],
            tail: "]".into(),
            ends: vec![end("]a", 5), end("]b", 6)],
        });
        let (mut session, first) = Session::start(&conversation);
        assert_eq!((&first[..], session.output_len()), (&b"[1]a"[..], Some(5)));
        let second = session.next("x").unwrap();
        assert!(second.ends_with(b",2]b"), "{second:?}");
        assert_eq!(session.output_len(), Some(6));
        let third = session.next("y").unwrap();
        assert!(third.ends_with(b",3]"), "{third:?}");
        assert_eq!((session.output_len(), session.next("z")), (None, None));
    }

    proptest! {
        #[test]
        fn every_body_holds_all_that_was_said(
            turns in prop::collection::vec(prop::collection::vec(".*", 1..3), 1..5),
            replies in prop::collection::vec(".*", 5),
        ) {
            let said: Vec<Vec<Value>> = turns
                .iter()
                .map(|texts| texts.iter().map(|text| json!({"role": "user", "content": text})).collect())
                .collect();
            let encode = |messages: &Vec<Value>| {
                messages.iter().map(Value::to_string).collect::<Vec<_>>().join(",").into()
            };
            let conversation = Arc::new(Conversation {
                head: r#"{"model":"m","messages":["#.into(),
                turns: said.iter().map(encode).collect(),
                tail: r#"],"stream":true}"#.into(),
                ..Conversation::default()
            });
            let (mut session, mut body) = Session::start(&conversation);
            let mut history = Vec::new();
            for (turn, messages) in said.iter().enumerate() {
                history.extend(messages.clone());
                let body_now: Value = serde_json::from_slice(&body).unwrap();
                prop_assert_eq!(body_now, json!({"model": "m", "messages": history, "stream": true}));
                history.push(json!({"role": "assistant", "content": replies[turn]}));
                let next = session.next(&replies[turn]);
                prop_assert_eq!(next.is_none(), turn + 1 == said.len());
                body = next.unwrap_or_default();
            }
        }
    }
}
