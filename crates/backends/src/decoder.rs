//! What all decoders share: events in, and the rules by which a reply is a success.

use crate::asked::Asked;
use crate::server_error;
use crate::sse::{DONE, Event, Events};
use bytes::Bytes;
use servebench_core::{Decode, End, Failure, FailureKind, Progress, Reply, Request, Stamp};
use std::hint::black_box;

/// How much of a frame that cannot be read is shown, in bytes.
const EXCERPT: usize = 200;

/// Reads the frames of one kind of reply.
pub(crate) trait Reading {
    /// Whether nothing but the end of the body says that a reply is complete.
    const ENDS_WITH_BODY: bool = false;

    /// Notes in `reply` what a frame says. `data` is not empty and not `[DONE]`.
    fn frame(&mut self, at: Stamp, data: &[u8], reply: &mut Reply) -> Result<(), Problem>;

    /// Looks at the memory that the next frame will need.
    fn near(&self) {}

    /// How many choices have finished; `None` when some choice that began has not.
    fn finished(&self) -> Option<usize>;
}

/// Why a frame is the last one read.
#[derive(Debug)]
pub(crate) enum Problem {
    /// It reports an error.
    Failed(Failure),
    /// It is no JSON, however leniently it is read.
    Unreadable(serde_json::Error),
}

/// The decoder of a reply whose frames `R` reads.
#[derive(Debug)]
pub(crate) struct Decoder<R> {
    events: Events,
    state: State<R>,
}

#[derive(Debug)]
struct State<R> {
    reading: R,
    /// The request's body: what it asked for is looked up in the rare cases that need it.
    body: Bytes,
    output_len: u32,
    /// Nothing that follows counts.
    done: bool,
    /// Events with data.
    events: u64,
    /// Events that were JSON without `data:`.
    bare_events: u64,
}

impl<R: Reading + Default> Decoder<R> {
    pub(crate) fn new(request: &Request) -> Self {
        let state = State {
            reading: R::default(),
            body: request.body.clone(),
            output_len: request.output_len,
            done: false,
            events: 0,
            bare_events: 0,
        };
        Self { events: Events::default(), state }
    }
}

impl<R: Reading> Decode for Decoder<R> {
    fn near(&self) {
        black_box((self.state.events, self.state.done));
        self.events.near();
        self.state.reading.near();
    }

    fn feed(&mut self, at: Stamp, bytes: &[u8], reply: &mut Reply) -> Progress {
        let Self { events, state } = self;
        if state.done {
            return Progress::Done;
        }
        match events.feed(at, bytes, &mut |event| state.take(event, reply)) {
            Ok(progress) => {
                if events.is_amid_line() {
                    reply.chunks.followed(at);
                }
                progress
            }
            Err(too_large) => {
                reply.fail(Failure::new(FailureKind::Protocol, too_large.to_string()));
                state.done = true;
                Progress::Done
            }
        }
    }

    fn end(&mut self, _at: Stamp, end: End, reply: &mut Reply) {
        let Self { events, state } = self;
        if !state.done {
            events.finish(end == End::Complete, &mut |event| state.take(event, reply));
        }
        if reply.failure.is_none()
            && let Err(failure) = state.judge(end, events.stray(), reply)
        {
            reply.fail(failure);
        }
    }
}

impl<R: Reading> State<R> {
    fn take(&mut self, event: Event<'_>, reply: &mut Reply) -> Progress {
        let data = event.data.trim_ascii();
        let chunks = reply.chunks.len();
        if !data.is_empty() {
            reply.last_line = Some(event.at);
        }
        if event.name == b"error" {
            reply.fail(server_error::in_event(data));
            self.done = true;
        } else if data == DONE {
            self.done = true;
        } else if !data.is_empty() {
            self.events += 1;
            self.bare_events += u64::from(event.bare);
            self.take_frame(event, data, reply);
        }
        if reply.chunks.len() == chunks {
            reply.chunks.followed(event.at);
        }
        if self.done { Progress::Done } else { Progress::More }
    }

    fn take_frame(&mut self, event: Event<'_>, data: &[u8], reply: &mut Reply) {
        let failure = match self.reading.frame(event.at, data, reply) {
            Ok(()) => return,
            Err(Problem::Failed(failure)) => failure,
            Err(Problem::Unreadable(error)) if event.unterminated && error.is_eof() => {
                Failure::new(FailureKind::Truncated, "the reply ends inside a frame")
            }
            // Pings and the like may carry anything.
            Err(Problem::Unreadable(_))
                if !matches!(event.name, b"" | b"message") && !data.starts_with(b"{") =>
            {
                return;
            }
            Err(Problem::Unreadable(error)) => Failure::new(
                FailureKind::Protocol,
                format!("a frame is not JSON ({error}): {}", excerpt(data)),
            ),
        };
        reply.fail(failure);
        self.done = true;
    }

    /// Tells whether a reply without a failure so far is a success.
    fn judge(&self, end: End, stray: &[u8], reply: &Reply) -> Result<(), Failure> {
        let fail = |kind, detail: &str| Err(Failure::new(kind, detail));
        let is_complete = self.done || self.all_finished();
        match end {
            End::Broken(failure) if !is_complete => return Err(failure),
            End::Broken(_) | End::Complete if is_complete => {}
            // A plain JSON body is whole by itself.
            _ if self.events == 1 && self.bare_events == 1 => {}
            _ if self.events == 0 && !stray.is_empty() => {
                let detail = format!("the reply is no event stream: {}", excerpt(stray));
                return fail(FailureKind::Protocol, &detail);
            }
            _ if self.events == 0 => return fail(FailureKind::Empty, "the reply is empty"),
            _ if R::ENDS_WITH_BODY || self.reached_length(reply) => {}
            _ => {
                let detail = "the reply ended without a finish reason and without [DONE]";
                return fail(FailureKind::Truncated, detail);
            }
        }
        let has_tokens = !reply.chunks.is_empty() || reply.completion_tokens.is_some_and(|n| n > 0);
        let stopped = reply.finish_reason.as_deref() == Some("stop");
        if has_tokens || (stopped && !Asked::of(&self.body).ignore_eos) {
            return Ok(());
        }
        fail(FailureKind::Empty, "the reply holds no token")
    }

    /// True when every choice asked for has its finish reason.
    fn all_finished(&self) -> bool {
        self.reading.finished().is_some_and(|n| n > 0 && n >= Asked::choices_of(&self.body))
    }

    /// True when the server's own count says that all tokens asked for were sent.
    fn reached_length(&self, reply: &Reply) -> bool {
        let choices = u32::try_from(Asked::choices_of(&self.body)).unwrap_or(u32::MAX);
        let asked = self.output_len.saturating_mul(choices);
        asked > 0 && reply.completion_tokens.is_some_and(|n| n >= asked)
    }
}

/// The beginning of foreign bytes, readable.
fn excerpt(bytes: &[u8]) -> String {
    let cut = bytes.len() > EXCERPT;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT)]);
    if cut { format!("{text}…") } else { text.into_owned() }
}
