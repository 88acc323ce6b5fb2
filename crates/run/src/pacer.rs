//! Waiting for due times, as precisely as the system can.

#[cfg(target_os = "linux")]
use crate::precise::Precise;
use servebench_core::{Clock, Stamp};
#[cfg(target_os = "linux")]
use servebench_reactor::Reactor;

/// Waits for one due time after the other.
///
/// The runtime's own timer is a wheel of milliseconds: a millisecond late at the median, and in
/// clumps, so that at a thousand requests a second a Poisson process is none any more. Where the
/// system has timers with a descriptor (Linux), they are waited for instead.
#[derive(Debug)]
pub(crate) struct Pacer {
    #[cfg(target_os = "linux")]
    precise: Option<Precise>,
}

impl Pacer {
    /// The runtime's own timer: what virtual time needs.
    pub(crate) fn of_runtime() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            precise: None,
        }
    }

    /// The most precise timer there is: the thread's reactor, if it is driven, waits for it.
    pub(crate) fn precise() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            precise: Reactor::current().and_then(|reactor| Precise::new(&reactor).ok()),
        }
    }

    /// Completes once `due` has come.
    pub(crate) async fn wait<C: Clock>(&self, clock: &C, due: Stamp) {
        #[cfg(target_os = "linux")]
        if let Some(precise) = &self.precise
            && precise.wait(clock, due).await.is_ok()
        {
            return;
        }
        while clock.now() < due {
            clock.sleep_until(due).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TokioClock;
    use crate::watch::drive_sockets;
    use tokio::task::LocalSet;

    #[test]
    fn no_timer_is_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let clock = TokioClock::default();
            clock.start();
            drive_sockets(&clock).unwrap();
            for pacer in [Pacer::precise(), Pacer::of_runtime()] {
                for microseconds in [1, 50, 900, 3000] {
                    let due = Stamp(clock.now().0 + microseconds * 1000);
                    pacer.wait(&clock, due).await;
                    assert!(clock.now() >= due);
                }
                // What has passed is not waited for.
                pacer.wait(&clock, Stamp(0)).await;
            }
        });
    }
}
