//! What all connections of one simulated server share.

use crate::clock;
use crate::live::Live;
use crate::profile::{Profile, StartRequest};
use crate::sync::lock;
use crate::truth::{Sent, TruthLog, TruthRecord};
use crate::wire::ApiError;
use crate::{SimConfig, SimError};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use tokio::sync::Notify;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) epoch: Instant,
    live: RwLock<Arc<Live>>,
    pub(crate) counts: Counts,
    pub(crate) truth: Mutex<TruthLog>,
    pub(crate) profile: Mutex<Profile>,
    /// Whether the end of a profile is to be written down.
    pub(crate) tracing: AtomicBool,
    /// Whether a flush is waiting for the server to be idle.
    pub(crate) flushing: AtomicBool,
    /// Told whenever the last request in flight has ended.
    pub(crate) idle: Notify,
    next_request: AtomicU64,
    next_job: AtomicU64,
}

/// Counters; all but the gauges only grow until they are reset.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: AtomicU64,
    pub(crate) finished: AtomicU64,
    pub(crate) aborted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) other: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) prompt_tokens: AtomicU64,
    pub(crate) cached_tokens: AtomicU64,
    pub(crate) tokens: AtomicU64,
    pub(crate) writes: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) open_connections: AtomicU64,
    pub(crate) in_flight: AtomicU64,
    pub(crate) peak_in_flight: AtomicU64,
}

/// The server's counts, as `GET /sim/stats` gives them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Stats {
    /// Generation requests accepted.
    pub requests: u64,
    /// Of those, answered to the end.
    pub finished: u64,
    /// Of those, given up by the client or cut by a fault.
    pub aborted: u64,
    /// Generation requests answered with an error status, or not at all, because of a fault or else.
    pub refused: u64,
    /// All other requests.
    pub other: u64,
    /// Requests on which a fault rule acted.
    pub faults: u64,
    /// Prompt tokens of the requests accepted.
    pub prompt_tokens: u64,
    /// Of those, found in the prefix cache.
    pub cached_tokens: u64,
    /// Output tokens sent.
    pub tokens: u64,
    /// Pieces of stream bodies handed to connections.
    pub writes: u64,
    /// Connections served.
    pub connections: u64,
    /// Connections open now.
    pub open_connections: u64,
    /// Generation requests in flight now.
    pub in_flight: u64,
    /// Most at one time.
    pub peak_in_flight: u64,
    /// Records left out of the truth log.
    pub truth_dropped: u64,
}

impl State {
    pub(crate) fn new(config: SimConfig) -> Self {
        Self {
            epoch: clock::now(),
            live: RwLock::new(Arc::new(Live::new(config))),
            counts: Counts::default(),
            truth: Mutex::default(),
            profile: Mutex::default(),
            tracing: AtomicBool::new(false),
            flushing: AtomicBool::new(false),
            idle: Notify::new(),
            next_request: AtomicU64::new(0),
            next_job: AtomicU64::new(0),
        }
    }

    /// The configuration in force.
    pub(crate) fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the configuration by a JSON object of fields, for requests that come from now on.
    pub(crate) fn patch(&self, json: &[u8]) -> Result<(), SimError> {
        let mut live = self.live.write().unwrap_or_else(PoisonError::into_inner);
        let config = live.config.patched(json)?;
        *live = Arc::new(live.changed(config));
        Ok(())
    }

    /// Nanoseconds since the simulator's start.
    pub(crate) fn nanos(&self, at: Instant) -> u64 {
        clock::nanos_since(self.epoch, at)
    }

    /// The next request's number.
    pub(crate) fn number(&self) -> u64 {
        self.next_request.fetch_add(1, Relaxed)
    }

    /// A new job's name.
    pub(crate) fn job(&self) -> u64 {
        self.next_job.fetch_add(1, Relaxed)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.counts.in_flight.load(Relaxed) == 0
    }

    /// Empties the prefix cache; with `totals`, sets the engine's counts to zero too.
    pub(crate) fn flush_cache(&self, totals: bool) {
        if let Some(timeline) = &self.live().timeline {
            let mut timeline = lock(timeline);
            timeline.advance(self.nanos(clock::now()));
            timeline.flush_cache();
            if totals {
                timeline.reset_totals();
            }
        }
    }

    /// Forward steps so far: the engine's, or, with canned timing, writes.
    pub(crate) fn steps(&self) -> u64 {
        match &self.live().timeline {
            Some(timeline) => {
                let mut timeline = lock(timeline);
                timeline.advance(self.nanos(clock::now()));
                timeline.engine().totals().steps
            }
            None => self.counts.writes.load(Relaxed),
        }
    }

    /// Starts a profile, or refuses.
    pub(crate) fn start_profile(&self, request: StartRequest) -> Result<(), ApiError> {
        // What is left of the profile before is written first.
        self.settle_profile().map_err(|error| trace_failed(&error))?;
        let step = self.steps();
        let mut profile = lock(&self.profile);
        profile.start(step, &request)?;
        let live = self.live();
        if live.config.profile_traces {
            let seconds = self.nanos(clock::now()) as f64 / 1e9;
            let id = format!("{:.6}", live.config.created as f64 + seconds);
            profile.order_trace(step, request, id);
            if let Some(timeline) = &live.timeline {
                lock(timeline).record();
            }
            self.tracing.store(true, Relaxed);
        }
        Ok(())
    }

    /// Stops the profile, or refuses; its trace is then written.
    pub(crate) fn stop_profile(&self) -> Result<(), ApiError> {
        self.settle_profile().map_err(|error| trace_failed(&error))?;
        let step = self.steps();
        lock(&self.profile).stop(step)?;
        self.settle_profile().map_err(|error| trace_failed(&error))
    }

    /// Writes the trace of a profile that has ended, if that is still to be done.
    pub(crate) fn settle_profile(&self) -> std::io::Result<()> {
        if !self.tracing.load(Relaxed) {
            return Ok(());
        }
        let step = self.steps();
        let mut profile = lock(&self.profile);
        let Some(order) = profile.due_trace(step) else { return Ok(()) };
        self.tracing.store(false, Relaxed);
        let live = self.live();
        let spans = live.timeline.as_ref().map(|timeline| lock(timeline).recorded());
        order.write(&spans.unwrap_or_default())
    }

    /// Forgets the truth log and sets every count to zero that is not a gauge.
    pub(crate) fn reset(&self) {
        *lock(&self.truth) = TruthLog::default();
        let counts = &self.counts;
        for count in [
            &counts.requests,
            &counts.finished,
            &counts.aborted,
            &counts.refused,
            &counts.other,
            &counts.faults,
            &counts.prompt_tokens,
            &counts.cached_tokens,
            &counts.tokens,
            &counts.connections,
        ] {
            count.store(0, Relaxed);
        }
        counts.peak_in_flight.store(counts.in_flight.load(Relaxed), Relaxed);
    }

    pub(crate) fn stats(&self) -> Stats {
        let counts = &self.counts;
        Stats {
            requests: counts.requests.load(Relaxed),
            finished: counts.finished.load(Relaxed),
            aborted: counts.aborted.load(Relaxed),
            refused: counts.refused.load(Relaxed),
            other: counts.other.load(Relaxed),
            faults: counts.faults.load(Relaxed),
            prompt_tokens: counts.prompt_tokens.load(Relaxed),
            cached_tokens: counts.cached_tokens.load(Relaxed),
            tokens: counts.tokens.load(Relaxed),
            writes: counts.writes.load(Relaxed),
            connections: counts.connections.load(Relaxed),
            open_connections: counts.open_connections.load(Relaxed),
            in_flight: counts.in_flight.load(Relaxed),
            peak_in_flight: counts.peak_in_flight.load(Relaxed),
            truth_dropped: lock(&self.truth).dropped,
        }
    }
}

fn trace_failed(error: &std::io::Error) -> ApiError {
    ApiError::new(500, format!("the trace could not be written: {error}"))
}

/// A generation request in flight. Dropping it ends the request: finished if it was said to be,
/// else aborted.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) state: Arc<State>,
    pub(crate) received: Instant,
    record: TruthRecord,
    limit: usize,
    finished: bool,
}

impl Ticket {
    pub(crate) fn new(
        state: Arc<State>,
        received: Instant,
        limit: usize,
        record: TruthRecord,
    ) -> Self {
        let counts = &state.counts;
        counts.requests.fetch_add(1, Relaxed);
        counts.prompt_tokens.fetch_add(record.prompt_tokens, Relaxed);
        let in_flight = counts.in_flight.fetch_add(1, Relaxed) + 1;
        counts.peak_in_flight.fetch_max(in_flight, Relaxed);
        Self { record, state, received, limit, finished: false }
    }

    /// Seconds since the request was read.
    pub(crate) fn seconds(&self, now: Instant) -> f64 {
        now.saturating_duration_since(self.received).as_secs_f64()
    }

    /// Notes tokens handed to the connection.
    pub(crate) fn sent(&mut self, now: Instant, choice: u32, tokens: u32) {
        self.record.push(Sent { at_ns: self.state.nanos(now), choice, tokens });
        // A server that cannot write a trace says so in its log, which this one has not.
        drop(self.state.settle_profile());
        self.state.counts.tokens.fetch_add(u64::from(tokens), Relaxed);
    }

    /// Notes whether the reply is complete.
    pub(crate) fn set_finished(&mut self, finished: bool) {
        self.finished = finished;
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut record = std::mem::take(&mut self.record);
        record.ended_ns = self.state.nanos(clock::now());
        record.aborted = !self.finished;
        lock(&self.state.truth).push(record, self.limit);
        let counts = &self.state.counts;
        let ended = if self.finished { &counts.finished } else { &counts.aborted };
        ended.fetch_add(1, Relaxed);
        if counts.in_flight.fetch_sub(1, Relaxed) == 1 {
            self.state.idle.notify_waiters();
        }
    }
}
