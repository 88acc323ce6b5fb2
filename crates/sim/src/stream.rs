//! The body of a streamed reply: waits for tokens, writes their events, misbehaves on demand.

use crate::clock;
use crate::faults::{After, FaultPlan, Length};
use crate::link::Link;
use crate::wire::{Lane, Shape};
use crate::work::Work;
use bytes::Bytes;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use tokio::time::{Instant, Sleep};

/// Bytes after which a piece of the body is handed over though more is due.
const PIECE: usize = 64 << 10;

/// A reply being streamed.
#[derive(Debug)]
pub(crate) struct TokenStream {
    shape: Shape,
    work: Work,
    link: Arc<Link>,
    phase: Phase,
    sleep: Option<Pin<Box<Sleep>>>,
    /// Whether the connection had its chance to flush since the last piece.
    yielded: bool,
    faults: Option<Box<FaultPlan>>,
    bytes_sent: u64,
    tokens_sent: u64,
    /// The lane that is served first, so that lanes take turns.
    turn: usize,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Tokens,
    /// Silent until then, for ever if `None`; then on with the tokens, or to the end.
    Silent(Option<Instant>, Then),
    /// All is written that will be; the connection breaks once that is flushed.
    Breaking,
    Ended,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Tokens,
    End,
}

impl TokenStream {
    pub(crate) fn new(
        shape: Shape,
        mut work: Work,
        link: Arc<Link>,
        faults: Option<Box<FaultPlan>>,
    ) -> Self {
        for lane in &mut work.lanes {
            shape.open(lane);
        }
        if faults.as_ref().is_some_and(|faults| faults.cut.is_some()) {
            link.mark_unflushed(); // The head is still to be written.
        }
        Self {
            shape,
            work,
            link,
            phase: Phase::Tokens,
            sleep: None,
            yielded: true,
            faults,
            bytes_sent: 0,
            tokens_sent: 0,
            turn: 0,
        }
    }

    /// The next piece of the body; `None` at its end, an error where a fault breaks it.
    pub(crate) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        loop {
            match self.phase {
                Phase::Tokens => {
                    if !self.yielded && self.shape.live.config.yield_each {
                        self.yielded = true;
                        cx.waker().wake_by_ref();
                        return Poll::Pending;
                    }
                    let now = clock::now();
                    self.work.refresh(now);
                    let mut out = self.buffer();
                    self.write_due(&mut out, now);
                    if !out.is_empty() {
                        return Poll::Ready(Some(Ok(self.hand_over(out))));
                    }
                    if let Phase::Tokens = self.phase {
                        let next = self.work.next(now);
                        if self.poll_until(next, cx).is_pending() {
                            return Poll::Pending;
                        }
                    }
                }
                Phase::Silent(until, then) => {
                    let Some(until) = until else { return Poll::Pending };
                    if self.poll_until(until, cx).is_pending() {
                        return Poll::Pending;
                    }
                    self.phase = match then {
                        Then::Tokens => Phase::Tokens,
                        Then::End => Phase::Ended,
                    };
                }
                Phase::Breaking => {
                    if self.link.poll_flushed(cx).is_pending() {
                        return Poll::Pending;
                    }
                    if self.faults.as_ref().is_some_and(|f| f.cut.is_some_and(|(_, rst)| rst)) {
                        self.link.reset();
                    }
                    return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
                }
                Phase::Ended => {
                    if let Some(how) = self.faults.as_mut().and_then(|faults| faults.close.take()) {
                        self.link.mark_unflushed();
                        self.link.close(how);
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }

    /// A buffer about as large as what is due, so that it grows seldom and wastes little.
    fn buffer(&self) -> Vec<u8> {
        let due = self.work.events_due();
        let events = if self.shape.live.config.yield_each { due.min(1) } else { due };
        let event = self.work.lanes.first().map_or(0, Lane::event_bytes);
        Vec::with_capacity(events.saturating_mul(event).min(PIECE + PIECE / 8))
    }

    /// Writes every event that is due, up to a piece's size, and the end after the last one.
    fn write_due(&mut self, out: &mut Vec<u8>, now: Instant) {
        let seconds = self.work.ticket.seconds(now);
        while out.len() < PIECE {
            if self.faults.is_some() && self.faulted(out, now) {
                return;
            }
            let count = self.work.lanes.len();
            let ready = (0..count)
                .map(|step| (self.turn + step) % count)
                .find(|place| self.work.lanes.get(*place).is_some_and(Lane::ready));
            let Some(lane) = ready.and_then(|place| self.work.lanes.get_mut(place)) else { break };
            self.turn = ready.map_or(0, |place| place + 1);
            let tokens_before = lane.sent;
            let end = self.work.pace.event_end(lane);
            let start = out.len();
            self.shape.event(out, lane, end, seconds);
            let tokens = lane.sent - tokens_before;
            if tokens > 0 {
                self.work.ticket.sent(now, lane.index, tokens);
            }
            if self.faults.as_ref().is_some_and(|f| f.duplicate == Some(self.tokens_sent)) {
                out.extend_from_within(start..);
            }
            self.tokens_sent += u64::from(tokens);
            if self.shape.live.config.yield_each {
                break;
            }
        }
        if self.work.lanes.iter().all(|lane| lane.done) {
            self.write_end(out, now);
        }
    }

    /// Writes what follows the last event and moves on to the end.
    fn write_end(&mut self, out: &mut Vec<u8>, now: Instant) {
        if self.faults.is_some() && self.faulted(out, now) {
            return;
        }
        self.shape.closing(out, &self.work.lanes);
        let (no_done, hold) =
            self.faults.as_ref().map_or((false, None), |faults| (faults.no_done, faults.hold));
        if !no_done {
            out.extend_from_slice(self.shape.done());
        }
        self.work.ticket.set_finished(true);
        self.phase = match hold {
            Some(length) => Phase::Silent(end_of(now, length), Then::End),
            None => Phase::Ended,
        };
    }

    /// Applies the faults that are due before the next event. True if no event may follow now.
    fn faulted(&mut self, out: &mut Vec<u8>, now: Instant) -> bool {
        let sent = self.tokens_sent;
        let Some(faults) = self.faults.as_deref_mut() else { return false };
        if let Some((After { after_bytes: None, after_tokens, .. }, _)) = faults.cut
            && sent >= u64::from(after_tokens.unwrap_or(0))
        {
            self.phase = Phase::Breaking;
            return true;
        }
        if let Some((_, length)) = faults.stall.take_if(|(at, _)| sent >= *at) {
            self.phase = Phase::Silent(end_of(now, length), Then::Tokens);
            return true;
        }
        // What stands before a token comes when the token is due.
        let lanes = &self.work.lanes;
        if !lanes.iter().any(Lane::ready) && !lanes.iter().all(|lane| lane.done) {
            return false;
        }
        if let Some((_, event, done)) = faults.error.take_if(|(at, ..)| sent >= *at) {
            out.extend_from_slice(event.as_bytes());
            if done {
                out.extend_from_slice(self.shape.done());
            }
            // The server says what it had to say: the exchange is complete, the request is not.
            self.phase = Phase::Ended;
            return true;
        }
        if let Some((_, text)) = faults.malformed.take_if(|(at, _)| sent >= *at) {
            out.extend_from_slice(text.as_bytes());
        }
        if let Some((every, text)) = &faults.ping
            && lanes.iter().any(Lane::ready)
            && sent.is_multiple_of(*every)
        {
            out.extend_from_slice(text.as_bytes());
        }
        false
    }

    /// Cuts the piece where a fault says so, and hands it over.
    fn hand_over(&mut self, mut out: Vec<u8>) -> Bytes {
        self.yielded = false;
        if let Some(faults) = &self.faults {
            self.link.mark_unflushed();
            if let Some((After { after_bytes: Some(limit), .. }, _)) = faults.cut {
                let left = limit.saturating_sub(self.bytes_sent);
                if out.len() as u64 >= left {
                    out.truncate(left as usize);
                    self.phase = Phase::Breaking;
                    self.work.ticket.set_finished(false);
                }
            }
        }
        self.bytes_sent += out.len() as u64;
        self.work.ticket.state.counts.writes.fetch_add(1, Relaxed);
        Bytes::from(out)
    }

    fn poll_until(&mut self, until: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(until)));
        if sleep.deadline() != until {
            sleep.as_mut().reset(until);
        }
        sleep.as_mut().poll(cx)
    }
}

fn end_of(now: Instant, length: Length) -> Option<Instant> {
    length.map(|length| clock::after(now, clock::nanos(length)))
}
