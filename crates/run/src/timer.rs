//! Timers with a descriptor, which the runtime waits for as for a socket.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A timer of the system, precise to its wake-up latency.
#[derive(Debug)]
pub(crate) struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// A timer that is not set. Must be made inside a runtime.
    #[expect(
        deprecated,
        reason = "the unsafe constructor asks for a descriptor that stays the same; OwnedFd's does"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(AsyncFd::with_interest(timer, Interest::READABLE)?))
    }

    /// A timer that expires again and again.
    pub(crate) fn every(period: Duration) -> io::Result<Self> {
        let timer = Self::new()?;
        timer.set(period, period)?;
        Ok(timer)
    }

    /// Completes after `time`, which must not be zero.
    pub(crate) async fn wait(&self, time: Duration) -> io::Result<()> {
        self.set(time, Duration::ZERO)?;
        self.expired().await
    }

    /// Completes once the timer has expired since this completed last.
    pub(crate) async fn expired(&self) -> io::Result<()> {
        loop {
            let mut ready = self.0.readable().await?;
            let mut expiries = [0; 8];
            let read = ready.try_io(|timer| Ok(rustix::io::read(timer.get_ref(), &mut expiries)?));
            // Otherwise it was the runtime that was too early.
            if let Ok(read) = read {
                return read.map(drop);
            }
        }
    }

    fn set(&self, first: Duration, then: Duration) -> io::Result<()> {
        let spec = |time| Timespec::try_from(time).map_err(io::Error::other);
        let times = Itimerspec { it_value: spec(first)?, it_interval: spec(then)? };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &times)?;
        Ok(())
    }
}
