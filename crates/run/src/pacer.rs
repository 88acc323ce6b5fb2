//! Waiting for due times, as precisely as the system can.

#[cfg(target_os = "linux")]
use crate::precise::Precise;
use servebench_core::{Clock, Stamp};

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

    /// The most precise timer there is. Must be made inside a runtime.
    pub(crate) fn precise() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            precise: Precise::new().ok(),
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

    #[test]
    fn no_timer_is_early() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = TokioClock::default();
            clock.start();
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
