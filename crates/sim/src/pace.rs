//! When tokens are due: at fixed times, or when the engine model has them.

use crate::clock;
use crate::engine::{JobId, Progress, Timeline};
use crate::sync::lock;
use crate::wire::Lane;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// Decides when the lanes of one reply have tokens.
#[derive(Debug)]
pub(crate) enum Pace {
    /// Token `i` is due at `first` + `i` · `gap_ns`.
    Canned { first: Instant, gap_ns: u64 },
    /// Lane `i` is the job `jobs[i]`.
    Engine { timeline: Arc<Mutex<Timeline>>, epoch: Instant, jobs: Vec<JobId> },
}

impl Pace {
    /// Brings the lanes' progress up to `now`.
    pub(crate) fn refresh(&self, now: Instant, lanes: &mut [Lane]) {
        match self {
            Self::Canned { first, gap_ns } => {
                if now < *first {
                    return;
                }
                let since = clock::nanos_since(*first, now);
                let due = since.checked_div(*gap_ns).map_or(u64::MAX, |gaps| gaps + 1);
                for lane in lanes {
                    lane.progress.generated = due.min(u64::from(lane.total)) as u32;
                    lane.progress.finished = lane.progress.generated == lane.total;
                }
            }
            Self::Engine { timeline, epoch, jobs } => {
                let mut timeline = lock(timeline);
                timeline.advance(clock::nanos_since(*epoch, now));
                for (lane, job) in lanes.iter_mut().zip(jobs) {
                    // No one else forgets a job; were one gone, its lane would have to end.
                    lane.progress = timeline.progress(*job).unwrap_or(Progress {
                        generated: lane.total,
                        finished: true,
                        ..lane.progress
                    });
                }
            }
        }
    }

    /// When to look again, if no lane is ready now.
    pub(crate) fn next(&self, now: Instant, lanes: &[Lane]) -> Instant {
        match self {
            Self::Canned { first, gap_ns } => {
                let open = lanes.iter().filter(|lane| !lane.done);
                let token = |lane: &Lane| {
                    lane.sent.saturating_add(lane.interval).min(lane.total).saturating_sub(1)
                };
                let gaps = open.map(token).min().unwrap_or(0);
                clock::after(*first, gap_ns.saturating_mul(u64::from(gaps)))
            }
            Self::Engine { timeline, epoch, .. } => {
                let end = lock(timeline).step_end();
                // A job without a step under way cannot be; looking again is safe.
                end.map_or(now, |end| clock::after(*epoch, end))
            }
        }
    }

    /// How many tokens the lane's next event takes it to.
    pub(crate) fn event_end(&self, lane: &Lane) -> u32 {
        match self {
            Self::Canned { .. } => {
                lane.sent.saturating_add(lane.interval).min(lane.progress.generated)
            }
            // One event per step: what came together is sent together.
            Self::Engine { .. } => lane.progress.generated.min(lane.total),
        }
    }

    /// Tells the engine that nobody waits for these jobs any more.
    pub(crate) fn give_up(&self, now: Instant) {
        if let Self::Engine { timeline, epoch, jobs } = self {
            let mut timeline = lock(timeline);
            for job in jobs {
                timeline.forget(clock::nanos_since(*epoch, now), *job);
            }
        }
    }
}
