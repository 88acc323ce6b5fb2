//! Decoding a recording once more.

use crate::RecordingError;
use crate::frames::{Asked, Frame, Recording};
use servebench_core::{Failure, FailureKind, Protocol, Record, Reply, Stamp};
use servebench_http::{Event, Replay};
use servebench_journal::Loss;
use servebench_journal::records::{Kept, RecordLog};
use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

/// One request and what was made of what it received.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// The request.
    pub asked: Asked,
    /// When it was about to be sent.
    pub began: Stamp,
    /// Its reply, as far as it came.
    pub reply: Reply,
    /// When the last thing happened to it that is recorded.
    pub end: Stamp,
    /// Whether it is known how it ended.
    pub is_over: bool,
    /// Whether events of it may have been lost while it was recorded.
    pub is_damaged: bool,
}

/// What a recording holds.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// The requests, in plan order.
    pub exchanges: Vec<Exchange>,
    /// What was known of them beside their replies once the run was over; `None` when the recording was cut
    /// before.
    pub log: Option<RecordLog>,
    /// Events that were lost while the recording was made.
    pub lost: u64,
    /// The end of the file that cannot be read.
    pub torn: Option<Loss>,
}

/// An exchange that is under way.
struct Open {
    worker: u64,
    asked: Asked,
    began: Stamp,
    end: Stamp,
    replay: Replay,
    is_damaged: bool,
}

/// Plays a recording to the end: its bytes go through the decoders of `protocol`. `watch` sees each event
/// once it was taken.
///
/// # Errors
///
/// When the file cannot be read, or holds a frame that makes no sense. A cut end is no error.
pub fn play<R: Read>(
    recording: &mut Recording<R>,
    protocol: &Arc<dyn Protocol>,
    mut watch: impl FnMut(u64, &Event<'_>, &Reply),
) -> Result<Played, RecordingError> {
    let mut played = Played::default();
    let mut asked: HashMap<u64, Asked> = HashMap::new();
    let mut open: HashMap<u64, Open> = HashMap::new();
    loop {
        let number = recording.place() + 1;
        let Some(frame) = recording.next_frame()? else { break };
        match frame {
            Frame::Requests(more) => asked.extend(more.into_iter().map(|it| (it.id, it))),
            Frame::Events(events) => {
                let (worker, lost) = (events.worker, events.lost);
                for event in events {
                    let (id, event) =
                        event.map_err(|error| RecordingError::Frame { frame: number, error })?;
                    if let Event::Began { at, .. } = &event {
                        let known = asked.remove(&id);
                        let is_damaged = known.is_none();
                        let asked = known.unwrap_or_else(|| Asked { id, ..Asked::default() });
                        let replay = Replay::new(Arc::clone(protocol), asked.request());
                        let (began, end) = (*at, *at);
                        let begun = Open { worker, asked, began, end, replay, is_damaged };
                        if let Some(before) = open.insert(id, begun) {
                            played.exchanges.push(before.close());
                        }
                    }
                    // Its beginning may be what was lost.
                    let Some(this) = open.get_mut(&id) else { continue };
                    this.replay.take(&event);
                    this.end = this.end.max(time(&event).unwrap_or(this.end));
                    watch(id, &event, this.replay.reply());
                    if this.replay.is_over()
                        && let Some(over) = open.remove(&id)
                    {
                        played.exchanges.push(over.close());
                    }
                }
                if lost > 0 {
                    played.lost = played.lost.saturating_add(lost);
                    let own = open.values_mut().filter(|open| open.worker == worker);
                    own.for_each(|open| open.is_damaged = true);
                }
            }
            Frame::End(log) => played.log = Some(*log),
            Frame::Unknown => {}
        }
    }
    played.torn = recording.ending().and_then(servebench_journal::Ending::loss);
    played.exchanges.extend(open.into_values().map(Open::close));
    played.exchanges.sort_by_key(|exchange| exchange.asked.id);
    Ok(played)
}

/// When something happened, where that is known.
fn time(event: &Event<'_>) -> Option<Stamp> {
    match event {
        Event::Began { at, .. } | Event::Head { at, .. } | Event::Over { at, .. } => Some(*at),
        Event::Data { receipt, .. } => Some(receipt.at),
        _ => None,
    }
}

impl Open {
    fn close(self) -> Exchange {
        let Self { asked, began, end, replay, is_damaged, .. } = self;
        let is_over = replay.is_over();
        let mut reply = replay.into_reply();
        reply.chunks.shrink();
        Exchange { asked, began, reply, end, is_over, is_damaged }
    }
}

impl Played {
    /// The records of the run, as its engine made them: what was noted of each request, with the reply that
    /// was played. Where nothing was noted, since the recording was cut, a request counts as intended
    /// and dispatched when it began.
    ///
    /// Where a request was cancelled or failed in the client, the wire tells nothing of it: that was noted. One
    /// whose end is not in the recording has failed.
    pub fn records(&self) -> Vec<Kept> {
        let noted = self.log.iter().flat_map(|log| &log.parts).flat_map(|part| &part.records);
        let noted: HashMap<u64, &Kept> = noted.map(|kept| (kept.record.id, kept)).collect();
        let kept = |exchange: &Exchange| {
            let noted = noted.get(&exchange.asked.id).map(|kept| (*kept).clone());
            let mut kept = noted.unwrap_or_else(|| exchange.alone());
            let failure = kept.record.reply.failure.take();
            kept.record.reply = exchange.reply.clone();
            if let Some(failure) = failure.or_else(|| exchange.gap()) {
                kept.record.reply.fail(failure);
            }
            kept
        };
        self.exchanges.iter().map(kept).collect()
    }

    /// True when everything that happened is in the recording.
    pub fn is_complete(&self) -> bool {
        self.log.is_some() && self.lost == 0
    }
}

impl Exchange {
    /// That its end is not known, if it is not.
    fn gap(&self) -> Option<Failure> {
        let (kind, words) = match (self.is_over, self.is_damaged) {
            (true, _) => return None,
            (false, true) => (FailureKind::Client, "its end was lost while it was recorded"),
            (false, false) => (FailureKind::Cancelled, "the recording ends before the reply"),
        };
        Some(Failure::new(kind, words))
    }

    /// What is known of a request of which nothing was noted.
    fn alone(&self) -> Kept {
        let record = Record {
            id: self.asked.id,
            intended: self.began,
            dispatched: self.began,
            prompt_len: self.asked.prompt_len,
            output_len: self.asked.output_len,
            ..Record::default()
        };
        Kept { record, end: self.end }
    }
}

/// What is noted of `record`: everything but what its reply tells. Of a failure only that which did not come
/// from the wire is kept.
pub fn noted(record: &Record) -> Record {
    let own =
        |failure: &&Failure| matches!(failure.kind, FailureKind::Cancelled | FailureKind::Client);
    let failure = record.reply.failure.as_ref().filter(own).cloned();
    Record {
        id: record.id,
        intended: record.intended,
        dispatched: record.dispatched,
        lateness: record.lateness,
        turnaround: record.turnaround,
        prompt_len: record.prompt_len,
        output_len: record.output_len,
        reply: Reply { failure, ..Reply::default() },
    }
}
