//! What can be watched while a run goes on.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counters of a run under way. Written by the workers, read by whoever draws them.
#[derive(Debug, Default)]
pub struct Progress {
    sent: AtomicUsize,
    finished: AtomicUsize,
    failed: AtomicUsize,
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

    pub(crate) fn send(&self) {
        self.sent.fetch_add(1, Relaxed);
    }

    pub(crate) fn finish(&self, failed: bool) {
        self.finished.fetch_add(1, Relaxed);
        self.failed.fetch_add(usize::from(failed), Relaxed);
    }
}
