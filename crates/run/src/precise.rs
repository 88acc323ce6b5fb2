//! Waiting for due times with a timer of the system's.

use crate::timer::Timer;
use servebench_core::{Clock, Stamp};
use servebench_reactor::Reactor;
use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::task::yield_now;

/// A timer that is set to a little before the due time. What is left is spent going round the event
/// loop, where input is read and every task has its turn.
///
/// A thread wakes late, on an idle core by some 50 µs. How much is learned as the run goes on. Going
/// round costs little, since the timer is late anyway: 1 % of a core at a thousand requests a second.
/// So it is worth it on a machine without a core to spare, too.
#[derive(Debug)]
pub(crate) struct Precise {
    timer: Timer,
    lead: Lead,
}

impl Precise {
    /// Of a reactor that is driven.
    pub(crate) fn new(reactor: &Rc<Reactor>) -> io::Result<Self> {
        Ok(Self { timer: Timer::new(reactor)?, lead: Lead::default() })
    }

    /// Completes once `due` has come.
    pub(crate) async fn wait<C: Clock>(&self, clock: &C, due: Stamp) -> io::Result<()> {
        let early = Stamp::from(due.offset().saturating_sub(self.lead.get()));
        let left = early.since(clock.now());
        if left > Duration::ZERO {
            self.timer.wait(left).await?;
            self.lead.learn(clock.now().since(early));
        }
        while clock.now() < due {
            yield_now().await;
        }
        Ok(())
    }
}

/// How long before a due time the timer is set: what three of four wake-ups need.
#[derive(Debug)]
struct Lead(Cell<Duration>);

impl Default for Lead {
    fn default() -> Self {
        Self(Cell::new(Duration::from_micros(50)))
    }
}

impl Lead {
    /// Of so many wake-ups one is later than the lead allows for.
    const ONE_IN: u32 = 4;
    /// What is learned from one that is not.
    const STEP: Duration = Duration::from_nanos(500);
    /// Longest lead. A machine that wakes later than this has troubles that a lead does not mend.
    const LONGEST: Duration = Duration::from_micros(100);

    fn get(&self) -> Duration {
        self.0.get()
    }

    /// Follows the quantile: a step down for a wake-up in time, and for one too late so many up that
    /// the two are in balance there.
    fn learn(&self, late: Duration) {
        let lead = self.0.get();
        let next = if late > lead {
            lead + Self::STEP * (Self::ONE_IN - 1)
        } else {
            lead.saturating_sub(Self::STEP)
        };
        self.0.set(next.min(Self::LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lead_is_what_three_of_four_wake_ups_need() {
        let lead = Lead::default();
        for scale in [200, 600, 40] {
            // Evenly spread up to `scale / 10` µs, in a fixed order that mixes well.
            for index in 0..4000 {
                lead.learn(Duration::from_nanos(100 * (index * 61 % scale)));
            }
            let want = Duration::from_nanos(100 * scale * 3 / 4);
            assert!(lead.get().abs_diff(want) < Duration::from_micros(3), "{scale}: {lead:?}");
        }
        for _ in 0..1000 {
            lead.learn(Duration::from_millis(1));
        }
        assert_eq!(lead.get(), Lead::LONGEST);
    }
}
