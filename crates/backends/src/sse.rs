//! Server-sent events out of the pieces in which a body arrives.
//!
//! The grammar is that of the HTML standard: lines end with LF, CRLF or a lone CR, one space after
//! the colon is dropped, `data` lines of one event are joined with LF, comments and unknown fields
//! are skipped, a byte order mark at the start is skipped. Four things that servers do beside it are
//! understood too:
//!
//! - a line that begins with `{` is data of its own (JSON lines, an error object without `data:`);
//! - a body that begins with JSON which does not end on its first line is one event, to its end;
//! - `[DONE]` is an event as soon as its line is complete;
//! - a `data` line after one that is a JSON document of its own begins another event.
//!
//! An event carries the stamp of the read that completed its last data line. How the body was cut
//! changes stamps only.

use crate::json;
use memchr::{memchr, memchr2};
use servebench_core::{Progress, Stamp};
use std::hint::black_box;
use std::mem;

/// The data of the event that ends a stream.
pub const DONE: &[u8] = b"[DONE]";

/// Longest event accepted, in bytes. Whole routed-expert tables fit; a runaway body does not.
pub const EVENT_LIMIT: usize = 64 << 20;

/// Bytes kept of the first line that means nothing, for the error message.
const STRAY_LIMIT: usize = 200;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When its last data line was complete.
    pub at: Stamp,
    /// Its `event` field; empty where there is none.
    pub name: &'a [u8],
    /// Its data lines, joined with LF.
    pub data: &'a [u8],
    /// True for JSON that stood there without `data:`.
    pub bare: bool,
    /// True when the body ended before the line did.
    pub unterminated: bool,
}

/// An event or a line longer than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the reply is larger than {limit} bytes")]
pub struct TooLarge {
    /// The limit, in bytes.
    pub limit: usize,
}

/// Where in the body the next line stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    /// Nothing was read: a byte order mark may follow.
    #[default]
    Start,
    /// Only white space was read.
    Leading,
    /// Past the first line with text.
    Body,
}

/// Splits a body into [`Event`]s.
///
/// An event that lies within one piece is handed on as a slice of it; only what is cut between
/// pieces is copied.
///
/// ```
/// use servebench_backends::sse::Events;
/// use servebench_core::{Progress, Stamp};
///
/// let mut events = Events::default();
/// let mut seen = Vec::new();
/// for (ms, piece) in [(10, "data: on"), (20, "e\n"), (30, "\ndata: two\n\n")] {
///     events.feed(Stamp::from_millis(ms), piece.as_bytes(), &mut |event| {
///         seen.push((event.at, String::from_utf8_lossy(event.data).into_owned()));
///         Progress::More
///     })?;
/// }
/// assert_eq!(seen[0], (Stamp::from_millis(20), "one".to_owned()));
/// assert_eq!(seen[1], (Stamp::from_millis(30), "two".to_owned()));
/// # Ok::<(), servebench_backends::sse::TooLarge>(())
/// ```
#[derive(Debug)]
pub struct Events {
    limit: usize,
    place: Place,
    /// The last line ended with a CR at the end of a piece: an LF right behind it belongs to it.
    after_cr: bool,
    /// A line whose end has not come.
    line: Vec<u8>,
    line_at: Stamp,
    /// Data lines of the event under way.
    data: Vec<u8>,
    data_lines: usize,
    data_at: Stamp,
    name: Vec<u8>,
    /// The rest of the body is one JSON document, gathered in `data`.
    whole: bool,
    stray: Vec<u8>,
}

impl Default for Events {
    fn default() -> Self {
        Self::with_limit(EVENT_LIMIT)
    }
}

impl Events {
    /// Looks at the memory that the next piece will need.
    pub(crate) fn near(&self) {
        black_box((self.limit, self.line.len(), self.data_lines, self.whole));
    }

    /// A splitter that refuses lines and events longer than `limit` bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            limit,
            place: Place::Start,
            after_cr: false,
            line: Vec::new(),
            line_at: Stamp(0),
            data: Vec::new(),
            data_lines: 0,
            data_at: Stamp(0),
            name: Vec::new(),
            whole: false,
            stray: Vec::new(),
        }
    }

    /// Takes the next piece of the body, received at `at`, and hands each event that it completes
    /// to `sink`, until that says [`Progress::Done`]; the rest of the piece is then dropped.
    pub fn feed(
        &mut self,
        at: Stamp,
        bytes: &[u8],
        sink: &mut impl FnMut(Event<'_>) -> Progress,
    ) -> Result<Progress, TooLarge> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if mem::take(&mut self.after_cr) && rest.starts_with(b"\n") {
                rest = &rest[1..];
                continue;
            }
            if self.whole {
                self.room_for(rest.len())?;
                self.data.extend_from_slice(rest);
                self.data_at = at;
                break;
            }
            let Some(end) = memchr2(b'\n', b'\r', rest) else {
                self.room_for(rest.len())?;
                self.line.extend_from_slice(rest);
                self.line_at = at;
                break;
            };
            let (head, tail) = rest.split_at(end);
            self.room_for(head.len())?;
            self.after_cr = tail == b"\r";
            rest = &tail[if tail.starts_with(b"\r\n") { 2 } else { 1 }..];
            let complete = matches!(rest.first(), Some(b'\n' | b'\r')) && !self.after_cr;
            let progress = if self.line.is_empty() {
                self.take_line(at, head, complete, sink)
            } else {
                let mut line = mem::take(&mut self.line);
                line.extend_from_slice(head);
                let progress = self.take_line(at, &line, complete, sink);
                line.clear();
                self.line = line;
                progress
            };
            if progress == Progress::Done {
                return Ok(progress);
            }
        }
        Ok(Progress::More)
    }

    /// The body is over. What is complete but not handed on yet goes to `sink`.
    ///
    /// `proper` says that the body ended as HTTP says it should: then a last line without its line
    /// end counts as complete.
    pub fn finish(&mut self, proper: bool, sink: &mut impl FnMut(Event<'_>) -> Progress) {
        let unterminated = !self.line.is_empty() || self.whole;
        if unterminated && !proper {
            if !self.whole {
                self.flush(false, sink);
            }
            return;
        }
        if !self.line.is_empty() {
            let line = mem::take(&mut self.line);
            let mut last = |event: Event<'_>| sink(Event { unterminated: true, ..event });
            // Pending data lines ended properly, but whether they are the last ones does not matter.
            if self.take_line(self.line_at, &line, false, &mut last) == Progress::Done {
                return;
            }
        }
        self.flush(unterminated, sink);
    }

    /// True when a line has begun whose end has not come.
    pub fn is_amid_line(&self) -> bool {
        !self.line.is_empty()
    }

    /// The beginning of the first line that is neither SSE nor JSON; empty if there was none.
    pub fn stray(&self) -> &[u8] {
        &self.stray
    }

    fn room_for(&self, more: usize) -> Result<(), TooLarge> {
        if self.line.len() + self.data.len() + more > self.limit {
            return Err(TooLarge { limit: self.limit });
        }
        Ok(())
    }

    /// Takes one line; `complete` says that a blank one is known to follow.
    fn take_line(
        &mut self,
        at: Stamp,
        line: &[u8],
        complete: bool,
        sink: &mut impl FnMut(Event<'_>) -> Progress,
    ) -> Progress {
        let mut line = line;
        if self.place != Place::Body {
            if mem::replace(&mut self.place, Place::Leading) == Place::Start {
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            let text = line.trim_ascii_start();
            if !text.is_empty() {
                self.place = Place::Body;
                if matches!(text.first(), Some(b'{' | b'[')) {
                    return self.take_bare(at, text, sink);
                }
            }
        }
        let Some(&first) = line.first() else {
            let progress = self.flush(false, sink);
            self.name.clear();
            return progress;
        };
        if first == b'{' || (first == b'[' && line.trim_ascii() == DONE) {
            return self.take_bare(at, line, sink);
        }
        let colon = memchr(b':', line);
        let field = &line[..colon.unwrap_or(line.len())];
        let value = colon.map_or(&[][..], |colon| {
            let value = &line[colon + 1..];
            value.strip_prefix(b" ").unwrap_or(value)
        });
        match field {
            b"data" => return self.take_data(at, value, complete, sink),
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            b"" | b"id" | b"retry" => {}
            _ if self.stray.is_empty() => {
                self.stray.extend_from_slice(&line[..line.len().min(STRAY_LIMIT)]);
            }
            _ => {}
        }
        Progress::More
    }

    fn take_data(
        &mut self,
        at: Stamp,
        value: &[u8],
        complete: bool,
        sink: &mut impl FnMut(Event<'_>) -> Progress,
    ) -> Progress {
        let done = value.starts_with(DONE) && value.trim_ascii() == DONE;
        // Checked for the second line only, so that the cost stays linear.
        let begins_another = self.data_lines == 1 && json::is_document(&self.data);
        if (done || begins_another) && self.flush(false, sink) == Progress::Done {
            return Progress::Done;
        }
        if done || (complete && self.data_lines == 0) {
            let name = mem::take(&mut self.name);
            return sink(Event { at, name: &name, data: value, bare: false, unterminated: false });
        }
        if self.data_lines > 0 {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        self.data_lines += 1;
        self.data_at = at;
        Progress::More
    }

    fn take_bare(
        &mut self,
        at: Stamp,
        line: &[u8],
        sink: &mut impl FnMut(Event<'_>) -> Progress,
    ) -> Progress {
        if self.flush(false, sink) == Progress::Done {
            return Progress::Done;
        }
        if line.trim_ascii() == DONE || json::is_document(line) {
            let name = mem::take(&mut self.name);
            return sink(Event { at, name: &name, data: line, bare: true, unterminated: false });
        }
        self.whole = true;
        self.data.extend_from_slice(line);
        self.data.push(b'\n');
        self.data_at = at;
        Progress::More
    }

    /// Hands on the event under way, if there is one.
    fn flush(
        &mut self,
        unterminated: bool,
        sink: &mut impl FnMut(Event<'_>) -> Progress,
    ) -> Progress {
        if self.data_lines == 0 && !self.whole {
            return Progress::More;
        }
        let progress = sink(Event {
            at: self.data_at,
            name: &self.name,
            data: &self.data,
            bare: self.whole,
            unterminated,
        });
        self.whole = false;
        self.data_lines = 0;
        self.data.clear();
        self.name.clear();
        progress
    }
}
