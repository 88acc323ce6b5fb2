//! A response that the thread's reactor reads by itself, calling in no task until it has ended.
//!
//! A task is polled from its outermost future to the innermost one, and all that lies on the way has to come
//! from memory: with a thousand streams that costs as much as reading the token. So who reads a
//! response moves in with its connection, and the task is woken when the response is over, and now and then
//! before, so that who looks after it sees that it is alive.

use super::{Connection, Incoming, Line, Outgoing, Shared};
use crate::coding::{Coding, Decoded};
use crate::meter::Meter;
use crate::reading::{Reading, Shown};
use crate::wire::Ended;
use servebench_core::{Reply, Stamp};
use servebench_reactor::{Handle, Ready};
use std::any::Any;
use std::future::poll_fn;
use std::mem::{replace, take};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How often the task of a response under way is woken at most.
const SIGN_OF_LIFE: Duration = Duration::from_millis(200);

/// Who reads a response from within its connection.
pub(crate) struct Guest {
    meter: Rc<Meter>,
    reading: Reading,
    reply: Reply,
    coding: Coding,
    /// How the exchange ended; or the panic that ended it.
    ended: Option<Result<Ended, Box<dyn Any + Send>>>,
    task: Waker,
    /// When the task was woken last, if anything has come.
    woken: Option<Stamp>,
}

impl Guest {
    /// Reads what has come.
    fn read(&mut self, line: &mut Line) {
        if self.ended.is_some() {
            return;
        }
        let Self { meter, reading, reply, coding, .. } = self;
        let mut shown = Shown { meter, reading, reply };
        let mut visit = Decoded { coding, visit: &mut shown };
        let mut cx = Context::from_waker(Waker::noop());
        let reading = AssertUnwindSafe(|| line.poll_read(&mut cx, &mut visit));
        self.ended = match catch_unwind(reading) {
            Ok(Poll::Ready(ended)) => Some(Ok(ended)),
            Ok(Poll::Pending) => None,
            Err(panic) => Some(Err(panic)),
        };
        let now = line.meter.last_read();
        let is_due = match self.woken {
            None => line.meter.has_read(),
            Some(woken) => now.since(woken) >= SIGN_OF_LIFE,
        };
        if self.ended.is_some() || is_due {
            self.woken = Some(now);
            self.task.wake_by_ref();
        }
    }
}

impl Ready for Shared {
    fn ready(&self) {
        let occupied = &mut *self.0.borrow_mut();
        if let Some(guest) = &mut occupied.guest {
            guest.read(&mut occupied.line);
        }
    }

    fn near(&self) {
        let Ok(occupied) = self.0.try_borrow() else { return };
        occupied.line.near();
        if let Some(guest) = &occupied.guest {
            guest.reading.near();
            guest.reply.chunks.near();
        }
    }
}

/// A connection whose socket the reactor looks after takes a guest.
pub(crate) struct Invitation {
    line: Rc<Shared>,
    meter: Rc<Meter>,
    handle: Handle,
}

impl Connection {
    pub(crate) fn invite(&self) -> Option<Invitation> {
        let handle = self.meter.handle()?;
        Some(Invitation { line: Rc::clone(&self.line), meter: Rc::clone(&self.meter), handle })
    }
}

impl Invitation {
    /// Moves in; `reading` and `reply` are back when the stay is over.
    pub(crate) fn accept<'a>(self, reading: &'a mut Reading, reply: &'a mut Reply) -> Stay<'a> {
        let Self { line, meter, handle } = self;
        let guest = Guest {
            woken: None,
            meter,
            reading: take(reading),
            reply: take(reply),
            coding: Coding::default(),
            ended: None,
            task: Waker::noop().clone(),
        };
        {
            let occupied = &mut *line.0.borrow_mut();
            occupied.line.incoming = Incoming::default();
            occupied.guest = Some(guest);
        }
        handle.call(Rc::<Shared>::clone(&line));
        Stay { line, handle, reading, reply }
    }
}

/// A guest's time with its connection, which ends when this is dropped.
pub(crate) struct Stay<'a> {
    line: Rc<Shared>,
    handle: Handle,
    reading: &'a mut Reading,
    reply: &'a mut Reply,
}

impl Stay<'_> {
    /// Sends `head` and `body`, and waits until the response has ended.
    pub(crate) async fn exchange(&self, head: &[u8], body: &[u8]) -> Ended {
        let mut outgoing = Outgoing::new(head, body);
        let mut looked = false;
        poll_fn(|cx| {
            let occupied = &mut *self.line.0.borrow_mut();
            let line = &mut occupied.line;
            let Some(guest) = &mut occupied.guest else { return Poll::Pending };
            // An answer may come before all is sent, and when sending fails.
            let sent = outgoing.poll(&mut line.stream, cx).is_ready();
            guest.task.clone_from(cx.waker());
            if !replace(&mut looked, true) {
                // What has come already is not told again.
                guest.read(line);
            }
            match guest.ended.take() {
                None => Poll::Pending,
                Some(Err(panic)) => resume_unwind(panic),
                Some(Ok(ended)) => {
                    line.over |= !(sent && outgoing.is_complete());
                    Poll::Ready(take(&mut guest.coding).end(ended))
                }
            }
        })
        .await
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        self.handle.release();
        if let Some(guest) = self.line.0.borrow_mut().guest.take() {
            (*self.reading, *self.reply) = (guest.reading, guest.reply);
        }
    }
}
