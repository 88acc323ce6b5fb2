//! A generation under way: its sequences, what paces them, and its place in the books.

use crate::clock;
use crate::pace::Pace;
use crate::state::Ticket;
use crate::wire::Lane;
use std::sync::atomic::Ordering::Relaxed;
use tokio::time::Instant;

/// Dropping it leaves the engine and ends the request.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) lanes: Vec<Lane>,
    pub(crate) pace: Pace,
    pub(crate) ticket: Ticket,
}

impl Work {
    /// Brings the lanes' progress up to `now`.
    pub(crate) fn refresh(&mut self, now: Instant) {
        self.pace.refresh(now, &mut self.lanes);
    }

    /// When to look again, if no lane is ready now.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        self.pace.next(now, &self.lanes)
    }

    /// How many events are due.
    pub(crate) fn events_due(&self) -> usize {
        let due = |lane: &Lane| {
            lane.progress.generated.saturating_sub(lane.sent).div_ceil(lane.interval) as usize
        };
        self.lanes.iter().map(due).sum()
    }

    /// Waits until every lane is complete; returns the time.
    pub(crate) async fn complete(&mut self) -> Instant {
        for lane in &mut self.lanes {
            lane.interval = lane.total.max(1); // Nothing before the end matters.
        }
        loop {
            let now = clock::now();
            self.refresh(now);
            if self.lanes.iter().all(|lane| lane.progress.finished) {
                return now;
            }
            for lane in &mut self.lanes {
                lane.done = lane.progress.finished;
            }
            tokio::time::sleep_until(self.next(now)).await;
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let cached = self.lanes.iter().map(|lane| u64::from(lane.progress.cached_tokens)).sum();
        self.ticket.state.counts.cached_tokens.fetch_add(cached, Relaxed);
        self.pace.give_up(clock::now());
    }
}
