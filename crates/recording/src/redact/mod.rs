//! A recording without what was said in it.
//!
//! The text of a reply is replaced by filler of the same length, place by place, so that reads, cuts and stamps stay
//! what they were. That the decoder makes the same of it is not assumed but tried; a body of which it does not
//! becomes filler as a whole.

mod body;
mod json;

use crate::events::Before;
use crate::frames::{self, Asked, Frame, Recording};
use crate::octets::Rest;
use crate::{Malformed, RecordingError};
use body::Filler;
use serde_json::Value;
use servebench_core::{Protocol, Reply};
use servebench_http::{Event, Head, Replay};
use servebench_journal::records::{Batch, RecordLog, RecordWriter};
use servebench_journal::{JournalError, Writer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;

/// Bytes of an exchange's events that are looked at together, at most: beyond, the body becomes filler.
const LIMIT: usize = 256 << 20;

/// What was redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Redacted {
    /// Requests whose replies are in the copy.
    pub exchanges: u64,
    /// Those of them whose bodies are filler altogether, since their text could not be told from the rest: their
    /// replies are other ones than they were.
    pub replaced: Vec<u64>,
}

/// One exchange, with its events as bytes.
#[derive(Default)]
struct Open {
    worker: u64,
    events: Vec<u8>,
    before: Before,
    asked: Asked,
    is_over: bool,
    lost: u64,
}

/// Copies a recording to `out` without generated text, server's words, prompts and addresses.
///
/// # Errors
///
/// When one cannot be read or the other not be written.
pub fn redact<R: Read>(
    recording: &mut Recording<R>,
    protocol: &Arc<dyn Protocol>,
    out: impl Write,
) -> Result<Redacted, RecordingError> {
    let mut metadata = recording.metadata().clone();
    hide(&mut metadata);
    let mut copy = Redactor {
        out: Writer::create(out, &frames::header(metadata))?,
        protocol: Arc::clone(protocol),
        redacted: Redacted::default(),
    };
    let mut asked: BTreeMap<u64, Asked> = BTreeMap::new();
    let mut open: BTreeMap<u64, Open> = BTreeMap::new();
    let mut end = None;
    loop {
        let frame = recording.place() + 1;
        let malformed = |error| RecordingError::Frame { frame, error };
        match recording.next_frame()? {
            None => break,
            Some(Frame::Requests(more)) => asked.extend(more.into_iter().map(|it| (it.id, it))),
            Some(Frame::Events(events)) => {
                let (worker, lost) = (events.worker, events.lost);
                for event in events {
                    let (id, event) = event.map_err(malformed)?;
                    if let Event::Began { .. } = event {
                        let asked = asked.remove(&id).unwrap_or_default();
                        let asked = Asked { id, ..asked };
                        let begun = Open { worker, asked, ..Open::default() };
                        if let Some(before) = open.insert(id, begun) {
                            copy.write(&before)?;
                        }
                    }
                    let Some(this) = open.get_mut(&id) else { continue };
                    this.is_over |= matches!(event, Event::Over { .. });
                    this.before.write(id, &event, &mut this.events);
                    if this.is_over
                        && let Some(over) = open.remove(&id)
                    {
                        copy.write(&over)?;
                    }
                }
                let mut own = open.values_mut().filter(|open| open.worker == worker);
                if lost > 0
                    && let Some(first) = own.next()
                {
                    first.lost += lost;
                    own.for_each(|other| other.lost += 1);
                }
            }
            Some(Frame::End(log)) => end = Some(log),
            Some(Frame::Unknown) => {}
        }
    }
    for left in open.values() {
        copy.write(left)?;
    }
    if let Some(log) = end {
        copy.end(&log)?;
    }
    copy.out.flush()?;
    Ok(copy.redacted)
}

/// The copy in the making.
struct Redactor<W> {
    out: Writer<W>,
    protocol: Arc<dyn Protocol>,
    redacted: Redacted,
}

impl<W: Write> Redactor<W> {
    fn write(&mut self, open: &Open) -> Result<(), RecordingError> {
        let events =
            self.events(open).map_err(|error| RecordingError::Frame { frame: 0, error })?;
        self.redacted.exchanges += 1;
        self.out.push(&frames::requests(std::slice::from_ref(&Asked {
            is_whole: false,
            ..open.asked.clone()
        })))?;
        self.out.push(&frames::events(open.worker, 0, &events))?;
        if open.lost > 0 {
            self.out.push(&frames::events(open.worker, open.lost, &[]))?;
        }
        Ok(())
    }

    /// The redacted events of an exchange.
    fn events(&mut self, open: &Open) -> Result<Vec<u8>, Malformed> {
        let events = read(&open.events)?;
        let body: Vec<u8> = events.iter().flat_map(|event| data(event)).copied().collect();
        let wanted = self.reply(open, &events);
        if body.len() <= LIMIT {
            for filler in [Filler::plain(), Filler::by_prefix()] {
                let filled = body::redact(&body, &filler);
                let events = with_body(&events, &filled);
                if is_same(&self.reply(open, &events), &wanted) {
                    return Ok(write(open.asked.id, &events));
                }
            }
        }
        self.redacted.replaced.push(open.asked.id);
        let filler = vec![b'x'; body.len()];
        let events = with_body(&events, &filler);
        Ok(write(open.asked.id, &events))
    }

    fn reply(&self, open: &Open, events: &[Event<'_>]) -> Reply {
        let mut replay = Replay::new(Arc::clone(&self.protocol), open.asked.request());
        for event in events {
            replay.take(event);
        }
        replay.into_reply()
    }

    fn end(&mut self, log: &RecordLog) -> Result<(), RecordingError> {
        let mut end = frames::end();
        copy_log(log, &mut end)?;
        self.out.push(&end)?;
        Ok(())
    }
}

fn read(bytes: &[u8]) -> Result<Vec<Event<'_>>, Malformed> {
    let (mut rest, mut before, mut events) = (Rest(bytes), Before::default(), Vec::new());
    while !rest.is_empty() {
        events.push(before.read(&mut rest)?.1);
    }
    Ok(events)
}

fn write(id: u64, events: &[Event<'_>]) -> Vec<u8> {
    let (mut bytes, mut before) = (Vec::new(), Before::default());
    for event in events {
        before.write(id, event, &mut bytes);
    }
    bytes
}

fn data<'a>(event: &Event<'a>) -> &'a [u8] {
    match event {
        Event::Data { bytes, .. } => bytes,
        _ => &[],
    }
}

/// The events with these bytes in place of the body's, as many as there were; heads lose what they say of
/// places.
fn with_body<'a>(events: &[Event<'a>], mut body: &'a [u8]) -> Vec<Event<'a>> {
    let redacted = |event: &Event<'a>| match event {
        Event::Data { receipt, bytes } => {
            let (now, later) = body.split_at_checked(bytes.len()).unwrap_or((body, &[]));
            body = later;
            Event::Data { receipt: *receipt, bytes: now }
        }
        Event::Head { at, head } => {
            let filler = Filler::plain();
            let metadata = head.metadata.as_ref().map(|text| {
                let filled = body::redact(text.as_bytes(), &filler);
                String::from_utf8_lossy(&filled).into_owned()
            });
            let location = head.location.as_ref().map(|_| "redacted".to_owned());
            let head = Head { location, metadata, ..head.as_ref().clone() };
            Event::Head { at: *at, head: Cow::Owned(head) }
        }
        other => other.clone(),
    };
    events.iter().map(redacted).collect()
}

/// Whether two replies say the same, but for their words.
fn is_same(a: &Reply, b: &Reply) -> bool {
    let kind = |reply: &Reply| reply.failure.as_ref().map(|failure| failure.kind);
    let wordless = |reply: &Reply| {
        let mut reply = reply.clone();
        reply.text = "x".repeat(reply.text.len());
        reply.failure = None;
        if let Some(experts) = reply.rare.as_mut().and_then(|rare| rare.routed_experts.as_mut()) {
            *experts = "x".repeat(experts.len()).into();
        }
        reply
    };
    kind(a) == kind(b) && wordless(a) == wordless(b)
}

/// A log of records without addresses. Its records hold no replies.
fn copy_log(log: &RecordLog, out: &mut Vec<u8>) -> Result<(), JournalError> {
    let hidden = |value: &Value| {
        let mut value = value.clone();
        hide(&mut value);
        value
    };
    let mut writer = RecordWriter::create(out, &hidden(&log.metadata))?;
    for part in &log.parts {
        writer.begin_part(&hidden(&part.facts))?;
        let mut batch = Batch::default();
        for kept in &part.records {
            batch.push(&kept.record, kept.end);
        }
        writer.push(&batch)?;
        if let Some(facts) = &part.end_facts {
            writer.end_part(&hidden(facts))?;
        }
    }
    writer.counts(log.counts.values())
}

/// Hides all texts and leaves the numbers.
fn hide_words(value: &mut Value) {
    match value {
        Value::String(text) => "redacted".clone_into(text),
        Value::Array(values) => values.iter_mut().for_each(hide_words),
        Value::Object(members) => members.values_mut().for_each(hide_words),
        _ => {}
    }
}

/// Hides what tells of places: addresses and paths, all that was added to requests' bodies, and what the
/// server told of itself in words.
fn hide(value: &mut Value) {
    match value {
        // An address is still one, and a document too, where a command line holds them.
        Value::String(text) => {
            if text.contains("://") {
                "http://redacted".clone_into(text);
            } else if text.starts_with(['/', '.', '~']) {
                "redacted".clone_into(text);
            } else if text.starts_with('{') {
                "{}".clone_into(text);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Object(members) => {
            for (key, value) in members.iter_mut() {
                match key.as_str() {
                    "extra_body" | "header_names" | "tag" => *value = Value::Null,
                    "server_info" => hide_words(value),
                    _ => hide(value),
                }
            }
        }
        _ => {}
    }
}
