//! How long a request may take, and what is said of one that took longer.

use crate::meter::Meter;
use crate::wire::HttpReader;
use servebench_core::{Clock, Failure, FailureKind, Stamp};
use std::time::Duration;

/// The pause before the first retry; each further one is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long replies may take, whether connections outlive them, and what is sent again.
///
/// A limit of `None` is off. Messages name the flags by which the commands set them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest wait for a connection: TCP, a proxy and TLS.
    pub connect: Option<Duration>,
    /// Longest wait for the first byte of an answer, counted from when the request was sent. Until then it
    /// takes the place of [`idle`](Self::idle).
    pub first_byte: Option<Duration>,
    /// Longest silence of the server; comments and partial lines count as life.
    pub idle: Option<Duration>,
    /// Longest time from dispatch to the end of the reply, all tries together.
    pub total: Option<Duration>,
    /// How many times a request is sent again when a try ended before one byte of an answer: no
    /// connection, or one that broke. Nothing is sent again because of a limit on the answer, or of what
    /// was answered.
    pub retries: u32,
    /// Use connections again. Without, each request opens one inside its own time.
    pub keep_alive: bool,
    /// Who reads HTTP/1.1.
    pub reader: HttpReader,
}

impl Limits {
    /// What a connection may take by default: a little less than what the system itself allows a lost
    /// handshake (127 s on Linux), which knows no limit for a proxy or TLS.
    pub const CONNECT: Duration = Duration::from_mins(2);
    /// What a request may take by default, as the Python tools have it.
    pub const TOTAL: Duration = Duration::from_hours(6);
}

impl Default for Limits {
    /// Two minutes to connect, any silence, six hours in all, no retries, warm connections.
    fn default() -> Self {
        Self {
            connect: Some(Self::CONNECT),
            first_byte: None,
            idle: None,
            total: Some(Self::TOTAL),
            retries: 0,
            keep_alive: true,
            reader: HttpReader::Auto,
        }
    }
}

impl Limits {
    /// Until when a request that began at `start` may take.
    fn end(&self, start: Stamp) -> Stamp {
        self.total.map_or(Stamp(u64::MAX), |total| after(start, total))
    }

    /// Completes with the failure once connecting, begun at `began`, or the whole request took too long.
    pub(crate) async fn watch_connect<C: Clock>(
        &self,
        clock: &C,
        start: Stamp,
        began: Stamp,
    ) -> Failure {
        let end = self.end(start);
        let connect = self.connect.map_or(Stamp(u64::MAX), |limit| after(began, limit));
        sleep_until(clock, end.min(connect)).await;
        match self.connect {
            Some(limit) if connect <= end => {
                timeout(format_args!("no connection within {limit:?} (--connect-timeout)"))
            }
            _ => self.took_too_long(),
        }
    }

    /// Completes with the failure once the server, whose connection `meter` watches, was silent for too
    /// long, or the whole request took too long.
    ///
    /// One timer, which looks what has come when it is due: a byte costs nothing here.
    pub(crate) async fn watch_answer<C: Clock>(
        &self,
        clock: &C,
        start: Stamp,
        meter: &Meter,
    ) -> Failure {
        let end = self.end(start);
        let sent = clock.now();
        loop {
            let now = clock.now();
            if now >= end {
                return self.took_too_long();
            }
            let silent = match (self.first_byte, self.idle) {
                (Some(limit), _) if !meter.has_read() => {
                    let due = after(meter.first_write().unwrap_or(sent), limit);
                    if now >= due {
                        return timeout(format_args!(
                            "not one byte of an answer within {limit:?} (--first-byte-timeout)"
                        ));
                    }
                    // The first byte wakes nobody: who waits for the next must be asked in time.
                    self.idle.map_or(due, |idle| due.min(after(now, idle)))
                }
                (_, Some(limit)) => {
                    let due = after(meter.last_read(), limit);
                    if now >= due {
                        return timeout(format_args!(
                            "the server sent nothing for {limit:?} (--idle-timeout)"
                        ));
                    }
                    due
                }
                (_, None) => end,
            };
            sleep_until(clock, silent.min(end)).await;
        }
    }

    fn took_too_long(&self) -> Failure {
        let limit = self.total.unwrap_or_default();
        timeout(format_args!("no complete reply within {limit:?} (--request-timeout)"))
    }

    /// The pause before retry number `nth` (from 0) of a request that began at `start`; `None` when there
    /// is to be none, or it would be too late.
    pub(crate) fn pause(&self, nth: u32, start: Stamp, now: Stamp) -> Option<Stamp> {
        let pause = FIRST_PAUSE.saturating_mul(1 << nth.min(16)).min(LONGEST_PAUSE);
        let until = after(now, pause);
        (nth < self.retries && until < self.end(start)).then_some(until)
    }
}

fn after(at: Stamp, duration: Duration) -> Stamp {
    Stamp::from(at.offset().saturating_add(duration))
}

/// Sleeps for ever where there is nothing to wake for.
async fn sleep_until<C: Clock>(clock: &C, at: Stamp) {
    if at == Stamp(u64::MAX) {
        return std::future::pending().await;
    }
    clock.sleep_until(at).await;
}

fn timeout(what: std::fmt::Arguments<'_>) -> Failure {
    Failure::new(FailureKind::Timeout, format!("timeout: {what}"))
}
