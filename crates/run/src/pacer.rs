//! Waiting for due times, as precisely as the system can.

use servebench_core::{Clock, Stamp};
use std::time::Duration;

/// Waits for one due time after the other.
///
/// The runtime's own timer is a wheel of milliseconds: a millisecond late at the median, and in
/// clumps, so that at a thousand requests a second a Poisson process is none any more. Where the
/// system has timers with a descriptor (Linux), they are waited for instead.
#[derive(Debug)]
pub(crate) struct Pacer {
    #[cfg(target_os = "linux")]
    timer: Option<linux::Timer>,
}

impl Pacer {
    /// The runtime's own timer: what virtual time needs.
    pub(crate) fn of_runtime() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            timer: None,
        }
    }

    /// The most precise timer there is. Must be made inside a runtime.
    pub(crate) fn precise() -> Self {
        Self {
            #[cfg(target_os = "linux")]
            timer: linux::Timer::new().ok(),
        }
    }

    /// Completes once `due` has come.
    pub(crate) async fn wait<C: Clock>(&self, clock: &C, due: Stamp) {
        loop {
            let left = due.since(clock.now());
            if left == Duration::ZERO {
                return;
            }
            #[cfg(target_os = "linux")]
            if let Some(timer) = &self.timer
                && timer.wait(left).await.is_ok()
            {
                continue;
            }
            clock.sleep_until(due).await;
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use std::io;
    use std::os::fd::OwnedFd;
    use std::time::Duration;
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    /// A timer whose expiry the runtime waits for as for a socket.
    #[derive(Debug)]
    pub(super) struct Timer(AsyncFd<OwnedFd>);

    impl Timer {
        #[expect(
            deprecated,
            reason = "the unsafe constructor asks for a descriptor that stays the same; OwnedFd's does"
        )]
        pub(super) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok(Self(AsyncFd::with_interest(timer, Interest::READABLE)?))
        }

        /// Completes after `time`, which must not be zero.
        pub(super) async fn wait(&self, time: Duration) -> io::Result<()> {
            let zero = Timespec::try_from(Duration::ZERO).map_err(io::Error::other)?;
            let time = Timespec::try_from(time).map_err(io::Error::other)?;
            let once = Itimerspec { it_interval: zero, it_value: time };
            timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
            loop {
                let mut ready = self.0.readable().await?;
                let mut expiries = [0; 8];
                let read =
                    ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expiries)?));
                // Otherwise it was the runtime that was too early.
                if let Ok(read) = read {
                    return read.map(drop);
                }
            }
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
