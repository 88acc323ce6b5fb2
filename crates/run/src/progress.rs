//! What can be watched while a run goes on.

use servebench_core::Stamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Counters of a run under way. Written by the workers, read by whoever draws them.
#[derive(Debug, Default)]
pub struct Progress {
    sent: AtomicUsize,
    finished: AtomicUsize,
    failed: AtomicUsize,
    /// When something last came for any request, in nanoseconds of the run's clock.
    alive: AtomicU64,
    /// How long nothing had come at the last look, in nanoseconds.
    silent: AtomicU64,
    /// What each worker waits for, as long as nothing comes.
    waiting: Mutex<BTreeMap<usize, Waiting>>,
}

/// A silence that has lasted for long: nothing comes for any request under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// How long.
    pub lasts: Duration,
    /// Number of requests under way.
    pub under_way: usize,
    /// Those that were sent first, at most [`Silence::NAMED`] of them.
    pub oldest: Vec<UnderWay>,
}

impl Silence {
    /// Most requests that are named.
    pub const NAMED: usize = 10;
}

/// A request that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnderWay {
    /// Its place in the plan.
    pub id: u64,
    /// How long ago it was sent.
    pub age: Duration,
    /// How long nothing has come for it, to the second.
    pub silent: Duration,
    /// Whether anything has come for it.
    pub has_begun: bool,
}

/// What one worker waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) under_way: usize,
    pub(crate) oldest: Vec<UnderWay>,
}

impl Progress {
    /// Requests sent so far.
    pub fn sent(&self) -> usize {
        self.sent.load(Relaxed)
    }

    /// Requests finished so far, failed ones included.
    pub fn finished(&self) -> usize {
        self.finished.load(Relaxed)
    }

    /// Requests failed so far.
    pub fn failed(&self) -> usize {
        self.failed.load(Relaxed)
    }

    /// What the run waits for, once nothing has come for 30 seconds or half of
    /// [`Endings::no_progress`](crate::Endings::no_progress). Without such a limit nobody looks.
    pub fn silence(&self) -> Option<Silence> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut oldest: Vec<_> =
            waiting.values().flat_map(|worker| &worker.oldest).copied().collect();
        oldest.sort_by_key(|request| (std::cmp::Reverse(request.age), request.id));
        oldest.truncate(Silence::NAMED);
        let under_way = waiting.values().map(|worker| worker.under_way).sum();
        let lasts = Duration::from_nanos(self.silent.load(Relaxed));
        (!oldest.is_empty()).then_some(Silence { lasts, under_way, oldest })
    }

    pub(crate) fn send(&self) {
        self.sent.fetch_add(1, Relaxed);
    }

    pub(crate) fn finish(&self, failed: bool) {
        self.finished.fetch_add(1, Relaxed);
        self.failed.fetch_add(usize::from(failed), Relaxed);
    }

    /// Something came for a request, as was seen `now`.
    pub(crate) fn note_arrival(&self, now: Stamp) {
        self.alive.fetch_max(now.0, Relaxed);
    }

    /// How long nothing had come for any request, seen from `now`.
    pub(crate) fn silent_for(&self, now: Stamp) -> Duration {
        let silent = now.since(Stamp(self.alive.load(Relaxed)));
        self.silent.store(u64::try_from(silent.as_nanos()).unwrap_or(u64::MAX), Relaxed);
        silent
    }

    /// Notes what a worker waits for in a silence; `None`: nothing, or there is none.
    pub(crate) fn note_waiting(&self, worker: usize, waiting: Option<Waiting>) {
        let mut all = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        match waiting {
            Some(waiting) => drop(all.insert(worker, waiting)),
            None => drop(all.remove(&worker)),
        }
    }
}
