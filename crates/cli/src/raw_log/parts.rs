//! One run of several parts.
//!
//! A part's clock begins with it. In the run as a whole it begins when the part before it was over: at its last
//! response, of a part that was cut at the last record there is. So the run's time is the sum of its parts',
//! and throughput is what was done in it; what went by between the parts is in none of them.

use super::facts::{EndFacts, Metadata, PartFacts, metadata};
use crate::serve::{Descriptors, MeasuredRun, Used};
use crate::{Failure, Io};
use serde::de::DeserializeOwned;
use serde_json::Value;
use servebench_core::{Chunks, PackedChunks, Record, Stamp};
use servebench_http::Stamps;
use servebench_journal::records::{Counted, Kept, Part, RecordLog};
use servebench_report::TcpCounts;
use servebench_run::{Finished, LoopHealth};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// What was done of a run so far.
pub(crate) struct History<M = Metadata> {
    pub(crate) metadata: M,
    pub(crate) parts: Vec<RunPart>,
    pub(crate) counts: BTreeMap<u64, Counted>,
}

/// One part.
pub(crate) struct RunPart {
    /// All of it but its records.
    pub(crate) run: MeasuredRun,
    pub(crate) records: Vec<Kept>,
    /// `None` where a part was cut.
    pub(crate) workers: Option<u64>,
    /// Whether a signal, or worse, ended it.
    pub(crate) interrupted: bool,
    /// What was learned beside its requests.
    pub(crate) beside: Option<Value>,
}

/// All parts as one run.
pub(crate) struct Whole {
    pub(crate) run: MeasuredRun,
    pub(crate) workers: Option<u64>,
    pub(crate) interrupted: bool,
    /// What was learned beside the requests of the last one.
    pub(crate) beside: Option<Value>,
    /// How many they are.
    pub(crate) parts: usize,
    /// When each request was over, by the records' ids.
    pub(crate) ends: BTreeMap<u64, Stamp>,
}

impl<M: DeserializeOwned> History<M> {
    /// Makes sense of a log, and says what of it is lost.
    pub(crate) fn of(log: RecordLog, path: &Path, io: &Io) -> Result<Self, Failure> {
        if let Some(loss) = log.ending.loss() {
            let (path, bytes, at) = (path.display(), loss.bytes, loss.at);
            io.say(format_args!(
                "warning: {path}: the last {bytes} bytes, from byte {at} on, give no record and are left out"
            ));
        }
        let metadata = metadata(&log.metadata)?;
        let parts = log.parts.into_iter().map(RunPart::of).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { metadata, parts, counts: log.counts })
    }
}

impl History {
    /// Ends of the parts' time, one after the other.
    pub(crate) fn span(&self) -> Stamp {
        self.parts.iter().fold(Stamp(0), |sum, part| after(sum, part.run.finished.end))
    }
}

impl Whole {
    /// All parts as one run of `total` requests.
    pub(crate) fn of(parts: Vec<RunPart>, total: usize) -> Self {
        let mut records: BTreeMap<u64, Kept> = BTreeMap::new();
        let mut start = Stamp(0);
        let count = parts.len();
        let mut whole: Option<Self> = None;
        for RunPart { run, records: kept, workers, interrupted, beside } in parts {
            let span = run.finished.end;
            // What was sent once more counts as it came then.
            records.extend(kept.into_iter().map(|it| (it.record.id, shifted(it, start))));
            start = after(start, span);
            let run = match whole {
                None => run,
                Some(before) => join(before.run, run),
            };
            let ends = BTreeMap::new();
            whole = Some(Self { run, workers, interrupted, beside, parts: count, ends });
        }
        let mut whole = whole.unwrap_or_else(|| Self {
            run: nothing(),
            workers: None,
            interrupted: true,
            beside: None,
            parts: 0,
            ends: BTreeMap::new(),
        });
        whole.ends = records.iter().map(|(id, kept)| (*id, kept.end)).collect();
        let finished = &mut whole.run.finished;
        finished.records = records.into_values().map(|kept| kept.record).collect();
        finished.unsent = total.saturating_sub(finished.records.len());
        whole
    }
}

impl RunPart {
    fn of(part: Part) -> Result<Self, Failure> {
        let facts = PartFacts::read(&part.facts)?;
        let records = part.records;
        let Some(end) = &part.end_facts else {
            let run = MeasuredRun {
                finished: Finished {
                    end: records.iter().map(|kept| kept.end).max().unwrap_or_default(),
                    ..Finished::default()
                },
                started_at_unix: facts.started_at_unix_ms as f64 / 1e3,
                stamps: if records.iter().any(|kept| kept.record.reply.read_lag.is_some()) {
                    Stamps::Kernel
                } else {
                    Stamps::User
                },
                ..nothing()
            };
            return Ok(Self { run, records, workers: None, interrupted: true, beside: None });
        };
        let end = EndFacts::read(end)?;
        let (workers, interrupted, beside) =
            (Some(end.workers), end.interrupted, end.beside.clone());
        Ok(Self { run: end.run(), records, workers, interrupted, beside })
    }
}

/// A run of which nothing is known.
fn nothing() -> MeasuredRun {
    MeasuredRun {
        finished: Finished::default(),
        started_at_unix: 0.0,
        after_seconds: 0.0,
        server_info: None,
        cache_flushed: false,
        lookup: Duration::ZERO,
        stamps: Stamps::User,
        profiler: None,
        profile_workers: None,
        used: Used::default(),
        descriptors: Descriptors::default(),
        calibration: None,
    }
}

/// When a part begins that follows one of length `span` begun at `start`: at a whole unit of chunks' stamps,
/// so that these can be moved.
fn after(start: Stamp, span: Stamp) -> Stamp {
    Stamp(start.0.saturating_add(span.0).next_multiple_of(Chunks::RESOLUTION))
}

/// Two parts' facts as one's. Of what a run has once, a part has its own: the first one's counts where the
/// run began, the last one's where it ended.
fn join(before: MeasuredRun, run: MeasuredRun) -> MeasuredRun {
    let (first, last) = (before.finished.end, run.finished.end);
    let weight = |share: f64, span: Stamp| share * span.as_secs_f64();
    let total = first.as_secs_f64() + last.as_secs_f64();
    let cpu_share = before.used.cpu_share.zip(run.used.cpu_share);
    let cpu_share = cpu_share.map(|(one, two)| (weight(one, first) + weight(two, last)) / total);
    let tcp = before.used.tcp.zip(run.used.tcp).map(|(one, two)| together(one, two));
    MeasuredRun {
        finished: Finished {
            end: after(first, last),
            ended_by: run.finished.ended_by,
            loops: join_loops(&before.finished.loops, &run.finished.loops),
            ..Finished::default()
        },
        started_at_unix: before.started_at_unix,
        after_seconds: before.after_seconds + run.after_seconds,
        server_info: run.server_info.or(before.server_info),
        cache_flushed: before.cache_flushed,
        lookup: before.lookup,
        used: Used { cpu_share: cpu_share.filter(|share| share.is_finite()), tcp },
        ..run
    }
}

fn together(one: TcpCounts, two: TcpCounts) -> TcpCounts {
    let sum = |one: Option<u64>, two: Option<u64>| Some(one? + two?);
    TcpCounts {
        retransmits: one.retransmits + two.retransmits,
        timeouts: sum(one.timeouts, two.timeouts),
        out_of_order: sum(one.out_of_order, two.out_of_order),
    }
}

/// Workers of the same place together. A part that was cut tells nothing, and then nothing is known.
fn join_loops(before: &[LoopHealth], loops: &[LoopHealth]) -> Vec<LoopHealth> {
    if before.is_empty() || loops.is_empty() {
        return Vec::new();
    }
    let count = before.len().max(loops.len());
    let at = |loops: &[LoopHealth], place: usize| loops.get(place).cloned().unwrap_or_default();
    let join = |place| {
        let (one, two) = (at(before, place), at(loops, place));
        LoopHealth {
            cpu: one.cpu + two.cpu,
            turns: one.turns + two.turns,
            stalls: one.stalls + two.stalls,
            longest_stall: one.longest_stall.max(two.longest_stall),
            stalled: one.stalled + two.stalled,
        }
    };
    (0..count).map(join).collect()
}

/// The same with all stamps later by `start`, a whole number of chunks' units.
fn shifted(kept: Kept, start: Stamp) -> Kept {
    if start == Stamp(0) {
        return kept;
    }
    let later = |at: Stamp| Stamp(at.0.saturating_add(start.0));
    let Kept { record, end } = kept;
    let Record { intended, dispatched, mut reply, .. } = record;
    reply.sent = reply.sent.map(later);
    reply.headers = reply.headers.map(later);
    reply.last_line = reply.last_line.map(later);
    let packed = reply.chunks.pack();
    if packed.count > 0 {
        let first = packed.first.saturating_add(start.0 / Chunks::RESOLUTION);
        let moved = Chunks::unpack(&PackedChunks { first, ..packed });
        reply.chunks = moved.unwrap_or_default();
    }
    let record =
        Record { intended: later(intended), dispatched: later(dispatched), reply, ..record };
    Kept { record, end: later(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_part_is_the_same_but_for_its_time() {
        let mut record = Record { dispatched: Stamp(100), ..Record::default() };
        for ms in [10, 25, 26] {
            record.reply.push_chunk(Stamp::from_millis(ms), Some(1), 0, "x");
        }
        record.reply.last_line = Some(Stamp::from_millis(30));
        record.reply.chunks.shrink();
        let start = after(Stamp(0), Stamp(1_000_000_001));
        assert_eq!(start.0 % Chunks::RESOLUTION, 0);
        let kept = Kept { record: record.clone(), end: Stamp::from_millis(30) };
        let moved = shifted(kept, start);
        assert_eq!(moved.end.since(start), Stamp::from_millis(30).offset());
        assert_eq!(moved.record.dispatched.since(start), Stamp(100).offset());
        assert_eq!(moved.record.reply.chunks.len(), 3);
        let chunks = record.reply.chunks.iter().zip(moved.record.reply.chunks.iter());
        for (before, after) in chunks {
            assert_eq!((after.at.since(start), after.tokens), (before.at.offset(), before.tokens));
        }
    }
}
