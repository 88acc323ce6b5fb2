//! The one stream of a request that carries a whole batch of prompts.
//!
//! A benchmark of one batch needs what an ordinary reply does not keep: the count of every prompt at
//! every frame, and how each prompt ended. [`Batch`] is a protocol that notes just that, beside the
//! reply, and no text.

use crate::json;
use crate::server_error;
use crate::sse::{DONE, Event, Events};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use servebench_core::{
    Decode, End, Failure, FailureKind, Progress, Protocol, Reply, Request, Sample, Stamp,
};
use std::sync::{Arc, Mutex, PoisonError};

/// The matched "stop" by which SGLang says that it computed NaN.
const NAN: &str = "NaN happened";
/// How much of a frame that cannot be read is shown, in bytes.
const EXCERPT: usize = 200;

/// Routes that take several prompts in one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchRoute {
    /// SGLang's `/generate`: frames name their prompt and its count of output tokens.
    Native,
    /// `/v1/completions`: frames name their prompt, and its count where the body asked for
    /// `continuous_usage_stats` and the server knows it.
    Completions,
}

/// One frame's news of one prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When the frame was received.
    pub at: Stamp,
    /// The prompt's place in the batch.
    pub row: u32,
    /// Its output tokens so far, where the route tells.
    pub tokens: Option<u32>,
    /// How it ended, in the frame that says so.
    pub ended: Option<RowEnd>,
}

/// How a prompt's output ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowEnd {
    /// It has the length asked for.
    Length,
    /// The model stopped sooner.
    Stop,
}

/// The protocol of one batch. Use one for each request: what the reply brings is noted here.
///
/// ```
/// use servebench_backends::batch::{Batch, BatchRoute, RowEnd};
/// use servebench_core::{End, Protocol, Reply, Request, Stamp};
///
/// let batch = Batch::new(BatchRoute::Native, 2, false);
/// let mut decoder = batch.decoder(&Request::default());
/// let mut reply = Reply::default();
/// for (ms, index, tokens, finish) in
///     [(10, 0, 1, "null"), (12, 1, 1, "null"), (20, 0, 2, "\"length\""), (21, 1, 2, "\"length\"")]
/// {
///     let frame = format!(
///         "data: {{\"index\":{index},\"meta_info\":{{\"completion_tokens\":{tokens},\
///          \"finish_reason\":{finish}}}}}\n\n"
///     );
///     decoder.feed(Stamp::from_millis(ms), frame.as_bytes(), &mut reply);
/// }
/// decoder.feed(Stamp::from_millis(22), b"data: [DONE]\n\n", &mut reply);
/// decoder.end(Stamp::from_millis(22), End::Complete, &mut reply);
///
/// let seen = batch.take();
/// assert_eq!((reply.failure, seen.len()), (None, 4));
/// assert_eq!((seen[3].row, seen[3].tokens, seen[3].ended), (1, Some(2), Some(RowEnd::Length)));
/// ```
#[derive(Clone, Debug)]
pub struct Batch {
    route: BatchRoute,
    rows: usize,
    may_stop: bool,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Batch {
    /// A batch of `rows` prompts, which may end before their length or not.
    pub fn new(route: BatchRoute, rows: usize, may_stop: bool) -> Self {
        Self { route, rows, may_stop, seen: Arc::default() }
    }

    /// All frames of the reply, in their order, once it is over.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Protocol for Batch {
    fn path(&self) -> &str {
        match self.route {
            BatchRoute::Native => "/generate",
            BatchRoute::Completions => "/v1/completions",
        }
    }

    /// A batch is more than one sample: its body is made elsewhere, and this one is empty.
    fn encode(&self, _sample: &Sample, _adapter: Option<&str>) -> Bytes {
        Bytes::new()
    }

    fn decoder(&self, _request: &Request) -> Box<dyn Decode> {
        Box::new(BatchDecoder {
            events: Events::default(),
            state: State {
                batch: self.clone(),
                seen: Vec::new(),
                began: vec![false; self.rows],
                ended: vec![false; self.rows],
                done: false,
                over: false,
            },
        })
    }
}

#[derive(Debug)]
struct BatchDecoder {
    events: Events,
    state: State,
}

#[derive(Debug)]
struct State {
    batch: Batch,
    seen: Vec<Seen>,
    began: Vec<bool>,
    ended: Vec<bool>,
    /// `[DONE]` came.
    done: bool,
    /// Nothing that follows counts.
    over: bool,
}

/// A frame of either route.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Frame {
    index: Option<u32>,
    meta_info: Option<Meta>,
    choices: Option<Vec<Choice>>,
    usage: Option<Usage>,
    error: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Meta {
    completion_tokens: Option<u32>,
    finish_reason: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Usage {
    completion_tokens: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Choice {
    index: Option<u32>,
    finish_reason: Option<Value>,
}

impl Decode for BatchDecoder {
    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress {
        let Self { events, state } = self;
        if state.over {
            return Progress::Done;
        }
        match events.feed(at, bytes, &mut |event| state.take(event, reply)) {
            Ok(progress) => progress,
            Err(too_large) => {
                reply.fail(Failure::new(FailureKind::Protocol, too_large.to_string()));
                state.over = true;
                Progress::Done
            }
        }
    }

    fn end(&mut self, _at: Stamp, end: End, reply: &mut Reply) {
        let Self { events, state } = self;
        if !state.over {
            events.finish(end == End::Complete, &mut |event| state.take(event, reply));
        }
        if reply.failure.is_none()
            && let Err(failure) = state.judge(end, events.stray())
        {
            reply.fail(failure);
        }
        let mut noted = state.batch.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *noted = std::mem::take(&mut state.seen);
    }
}

impl State {
    fn take(&mut self, event: Event<'_>, reply: &mut Reply) -> Progress {
        let data = event.data.trim_ascii();
        if self.over {
            return Progress::Done;
        }
        if !data.is_empty() {
            reply.last_line = Some(event.at);
        }
        if event.name == b"error" {
            reply.fail(server_error::in_event(data));
            self.over = true;
        } else if data == DONE {
            self.done = true;
            self.over = true;
        } else if !data.is_empty()
            && let Err(failure) = self.frame(event.at, data)
        {
            reply.fail(failure);
            self.over = true;
        }
        if self.over { Progress::Done } else { Progress::More }
    }

    fn frame(&mut self, at: Stamp, data: &[u8]) -> Result<(), Failure> {
        let frame: Frame = serde_json::from_slice(data)
            .or_else(|_| serde_json::from_slice(&json::repair(data)))
            .map_err(|error| {
                let text = String::from_utf8_lossy(&data[..data.len().min(EXCERPT)]);
                let detail = format!("a frame cannot be read ({error}): {text}");
                Failure::new(FailureKind::Protocol, detail)
            })?;
        let ordinary = match self.batch.route {
            BatchRoute::Native => frame.meta_info.is_some(),
            BatchRoute::Completions => frame.choices.is_some(),
        };
        if frame.error.is_some() || !ordinary {
            let value = json::value(data).unwrap_or_default();
            if let Some(failure) = server_error::in_frame(&value) {
                return Err(failure);
            }
        }
        match self.batch.route {
            BatchRoute::Native => {
                let Some(meta) = frame.meta_info else { return Ok(()) };
                let Some(tokens) = meta.completion_tokens else {
                    let detail = "a frame has no meta_info.completion_tokens";
                    return Err(Failure::new(FailureKind::Protocol, detail));
                };
                let row = frame.index.unwrap_or(0);
                self.note(at, row, Some(tokens), meta.finish_reason.as_ref())
            }
            BatchRoute::Completions => {
                let choices = frame.choices.unwrap_or_default();
                // With several choices in one frame the count is not of one of them.
                let usage = frame.usage.filter(|_| choices.len() == 1);
                let tokens = usage.and_then(|usage| usage.completion_tokens);
                choices.iter().try_for_each(|choice| {
                    let row = choice.index.unwrap_or(0);
                    self.note(at, row, tokens, choice.finish_reason.as_ref())
                })
            }
        }
    }

    fn note(
        &mut self,
        at: Stamp,
        row: u32,
        tokens: Option<u32>,
        finish: Option<&Value>,
    ) -> Result<(), Failure> {
        let place = row as usize;
        let Some(began) = self.began.get_mut(place) else {
            let detail = format!("a frame is of prompt {row}, in a batch of {}", self.batch.rows);
            return Err(Failure::new(FailureKind::Protocol, detail));
        };
        *began |= tokens.is_none_or(|tokens| tokens > 0);
        let ended = finish.map(|finish| self.how_ended(row, finish)).transpose()?;
        self.ended[place] |= ended.is_some();
        self.seen.push(Seen { at, row, tokens, ended });
        Ok(())
    }

    /// Takes a finish reason: a string, or SGLang's object. Only those that a whole output has pass.
    fn how_ended(&self, row: u32, finish: &Value) -> Result<RowEnd, Failure> {
        let text = |key: &str| finish.get(key).and_then(Value::as_str);
        let reason = finish.as_str().or_else(|| text("type")).unwrap_or_default();
        let fail = |kind, what: &str| {
            let detail = format!("prompt {row} of the batch {what}: {finish}");
            Err(Failure::new(kind, detail))
        };
        match reason {
            "length" => Ok(RowEnd::Length),
            "stop" if text("matched") == Some(NAN) => {
                fail(FailureKind::Server, "ended since the server computed NaN")
            }
            "stop" if self.batch.may_stop => Ok(RowEnd::Stop),
            "stop" => fail(FailureKind::Server, "stopped before its length, despite ignore_eos"),
            "abort" => fail(FailureKind::Aborted, "was aborted"),
            _ => fail(FailureKind::Server, "ended in an unknown way"),
        }
    }

    /// Tells whether a reply without a failure so far is whole.
    fn judge(&self, end: End, stray: &[u8]) -> Result<(), Failure> {
        let fail = |kind, detail: String| Err(Failure::new(kind, detail));
        let whole = self.done || (!self.ended.is_empty() && self.ended.iter().all(|ended| *ended));
        match end {
            End::Broken(failure) if !whole => return Err(failure),
            End::Complete if !whole && self.seen.is_empty() && !stray.is_empty() => {
                let text = String::from_utf8_lossy(stray);
                return fail(
                    FailureKind::Protocol,
                    format!("the reply is no event stream: {text}"),
                );
            }
            End::Complete if !whole => {
                let detail = "the reply ended without [DONE]".to_owned();
                return fail(FailureKind::Truncated, detail);
            }
            _ => {}
        }
        let rows = &self.batch.rows;
        if let Some(row) = self.began.iter().position(|began| !began) {
            let detail = format!("prompt {row} of {rows} brought no token");
            return fail(FailureKind::Empty, detail);
        }
        let told = self.batch.route == BatchRoute::Native;
        if let Some(row) = self.ended.iter().position(|ended| !ended).filter(|_| told) {
            let detail = format!("prompt {row} of {rows} has no finish reason");
            return fail(FailureKind::Truncated, detail);
        }
        Ok(())
    }
}

/// What must hold for all bytes: no panic, cuts change stamps only, nothing follows the end. The first
/// byte chooses route, rows and the cut.
pub(crate) fn fuzz(data: &[u8]) {
    let Some((&seed, data)) = data.split_first() else { return };
    let route = if seed & 1 == 0 { BatchRoute::Native } else { BatchRoute::Completions };
    let read = |cut: usize| {
        let batch = Batch::new(route, usize::from(seed >> 1 & 3), seed & 8 != 0);
        let mut decoder = batch.decoder(&Request::default());
        let mut reply = Reply::default();
        let (head, tail) = data.split_at(cut);
        let mut progress = decoder.feed(Stamp(0), head, &mut reply);
        let before = (progress == Progress::Done).then(|| reply.clone());
        progress = decoder.feed(Stamp(0), tail, &mut reply);
        if let Some(before) = before {
            assert_eq!((progress, &before), (Progress::Done, &reply));
        }
        decoder.end(Stamp(0), End::Complete, &mut reply);
        let seen = batch.take();
        assert!(seen.iter().all(|seen| (seen.row as usize) < 4));
        (reply, seen)
    };
    let whole = read(0);
    assert_eq!(whole, read(data.len()));
    assert_eq!(whole, read(usize::from(seed).min(data.len())));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(route: BatchRoute, rows: usize, may_stop: bool, body: &str) -> (Reply, Vec<Seen>) {
        let batch = Batch::new(route, rows, may_stop);
        let mut decoder = batch.decoder(&Request::default());
        let mut reply = Reply::default();
        decoder.feed(Stamp(64), body.as_bytes(), &mut reply);
        decoder.end(Stamp(64), End::Complete, &mut reply);
        (reply, batch.take())
    }

    fn native(index: u32, tokens: u32, finish: &str) -> String {
        format!(
            "data: {{\"text\":\"x\",\"index\":{index},\"meta_info\":{{\"completion_tokens\":{tokens},\
             \"finish_reason\":{finish}}}}}\n\n"
        )
    }

    #[track_caller]
    fn failure(reply: &Reply) -> (FailureKind, &str) {
        let failure = reply.failure.as_ref().expect("a failure");
        (failure.kind, &failure.detail)
    }

    #[test]
    fn the_frames_of_all_prompts_are_told_apart() {
        let length = r#"{"type":"length","length":2}"#;
        let body = [native(0, 1, "null"), native(1, 2, length), native(0, 2, length)].concat();
        let (reply, seen) = read(BatchRoute::Native, 2, false, &format!("{body}data: [DONE]\n\n"));
        assert_eq!(reply.failure, None);
        assert_eq!(reply.last_line, Some(Stamp(64)));
        let told: Vec<_> = seen.iter().map(|seen| (seen.row, seen.tokens, seen.ended)).collect();
        let (length, none) = (Some(RowEnd::Length), None);
        assert_eq!(told, [(0, Some(1), none), (1, Some(2), length), (0, Some(2), length)]);
    }

    #[test]
    fn completions_bring_prompts_without_counts() {
        let body = "data: {\"choices\":[{\"index\":1,\"text\":\"a\"},{\"index\":0,\"text\":\"\"}]}\n\n\
            data: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
        let (reply, seen) = read(BatchRoute::Completions, 2, false, body);
        assert_eq!(reply.failure, None);
        assert_eq!(
            seen.iter().map(|seen| (seen.row, seen.tokens)).collect::<Vec<_>>(),
            [(1, None), (0, None)]
        );
    }

    #[test]
    fn completions_bring_counts_where_the_server_knows_them() {
        let body = "data: {\"choices\":[{\"index\":1,\"text\":\"a\"}],\"usage\":{\"completion_tokens\":3}}\n\n\
            data: {\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}],\"usage\":{\"completion_tokens\":2}}\n\n\
            data: {\"choices\":[],\"usage\":{\"completion_tokens\":5}}\n\ndata: [DONE]\n\n";
        let (reply, seen) = read(BatchRoute::Completions, 2, true, body);
        assert_eq!((reply.failure, seen.len()), (None, 2));
        assert_eq!((seen[0].row, seen[0].tokens), (1, Some(3)));
        assert_eq!((seen[1].tokens, seen[1].ended), (Some(2), Some(RowEnd::Stop)));
    }

    #[test]
    fn an_early_stop_must_be_allowed_and_nan_never_is() {
        let stop = native(0, 1, r#"{"type":"stop","matched":2}"#) + "data: [DONE]\n\n";
        let (reply, seen) = read(BatchRoute::Native, 1, true, &stop);
        assert_eq!((reply.failure, seen[0].ended), (None, Some(RowEnd::Stop)));
        let (reply, _) = read(BatchRoute::Native, 1, false, &stop);
        assert!(failure(&reply).1.contains("despite ignore_eos"), "{reply:?}");
        let nan = native(0, 1, r#"{"type":"stop","matched":"NaN happened"}"#);
        let (reply, _) = read(BatchRoute::Native, 1, true, &nan);
        assert!(failure(&reply).1.contains("computed NaN"), "{reply:?}");
        let abort = native(0, 1, r#"{"type":"abort","message":"full"}"#);
        let (reply, _) = read(BatchRoute::Native, 1, true, &abort);
        assert_eq!(failure(&reply).0, FailureKind::Aborted);
    }

    #[test]
    fn what_is_missing_or_too_much_is_a_failure() {
        let one = native(0, 1, "\"length\"");
        let (reply, _) = read(BatchRoute::Native, 2, false, &format!("{one}data: [DONE]\n\n"));
        assert_eq!(failure(&reply), (FailureKind::Empty, "prompt 1 of 2 brought no token"));
        let (reply, _) = read(BatchRoute::Native, 2, false, &one);
        assert_eq!(failure(&reply).0, FailureKind::Truncated);
        let (reply, _) = read(BatchRoute::Native, 1, false, &native(1, 1, "null"));
        assert_eq!(failure(&reply).0, FailureKind::Protocol);
        let (reply, _) =
            read(BatchRoute::Native, 1, false, "data: {\"error\":{\"message\":\"no\"}}\n\n");
        assert_eq!(failure(&reply), (FailureKind::Server, "no"));
        let (reply, _) = read(
            BatchRoute::Native,
            1,
            false,
            &format!("{}data: [DONE]\n\n", native(0, 1, "null")),
        );
        assert_eq!(failure(&reply).0, FailureKind::Truncated);
        // Whole without [DONE] when all have ended.
        assert_eq!(read(BatchRoute::Native, 1, false, &one).0.failure, None);
    }

    #[test]
    fn nan_in_log_probabilities_is_read() {
        let body = "data: {\"index\":0,\"meta_info\":{\"completion_tokens\":1,\"output_token_logprobs\":\
            [[NaN,3,null]],\"finish_reason\":\"length\"}}\n\ndata: [DONE]\n\n";
        assert_eq!(read(BatchRoute::Native, 1, false, body).0.failure, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(seed: u8, text in "(data: |\\{|\\}|\"index\":|\"meta_info\":|\"completion_tokens\":|[0-5]|,|\n|\\[DONE\\]|\"choices\":|\\[|\\]){0,40}") {
            fuzz(&[&[seed][..], text.as_bytes()].concat());
        }

        #[test]
        fn any_sequence_of_frames_is_read(seed: u8, frames in prop::collection::vec((0u32..4, 0u32..4, 0usize..3), 0..12)) {
            let finish = ["null", "\"length\"", "{\"type\":\"stop\"}"];
            let body: String = frames.iter().map(|&(row, tokens, end)| native(row, tokens, finish[end])).collect();
            fuzz(&[&[seed & !1][..], body.as_bytes(), b"data: [DONE]\n\n"].concat());
        }
    }
}
