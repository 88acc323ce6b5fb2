//! Timers with a descriptor, which the reactor waits for as for a socket.

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use servebench_reactor::{Reactor, Source};
use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

/// A timer of the system, precise to its wake-up latency.
#[derive(Debug)]
pub(crate) struct Timer(Source<OwnedFd>);

impl Timer {
    /// A timer that is not set, of a reactor that is driven.
    pub(crate) fn new(reactor: &Rc<Reactor>) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(Source::new(timer, reactor)?))
    }

    /// A timer that expires again and again.
    pub(crate) fn every(period: Duration, reactor: &Rc<Reactor>) -> io::Result<Self> {
        let timer = Self::new(reactor)?;
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
        poll_fn(|cx| {
            loop {
                ready!(self.0.poll_readable(cx));
                self.0.emptied();
                let mut expiries = [0; 8];
                match rustix::io::read(self.0.get_ref(), &mut expiries) {
                    // What was told is of before it was set.
                    Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                    read => return Poll::Ready(read.map(drop).map_err(io::Error::from)),
                }
            }
        })
        .await
    }

    fn set(&self, first: Duration, then: Duration) -> io::Result<()> {
        let spec = |time| Timespec::try_from(time).map_err(io::Error::other);
        let times = Itimerspec { it_value: spec(first)?, it_interval: spec(then)? };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &times)?;
        Ok(())
    }
}
