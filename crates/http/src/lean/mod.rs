//! A reader of HTTP/1.1 that does not copy: what is received goes from one buffer that all
//! connections of a worker share straight to the decoder.
//!
//! A general client buffers per connection, hands out owned frames and wakes itself for each. With
//! events packed into large reads that costs more than everything else a load client does, and a
//! buffer for each of ten thousand streams is memory for nothing.

mod chunked;
#[cfg(target_os = "linux")]
mod guest;
mod head;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;

#[cfg(target_os = "linux")]
pub(crate) use guest::Invitation;
pub(crate) use incoming::{Incoming, Place};
pub(crate) use outgoing::{complete, preamble};

use crate::connect::Stream;
use crate::meter::Meter;
use crate::wire::{Ended, Ignore, Visit, broken_by, truncated};
use outgoing::Outgoing;
use servebench_core::{Failure, FailureKind};
use std::cell::RefCell;
use std::fmt::Debug;
use std::future::poll_fn;
#[cfg(target_os = "linux")]
use std::hint::black_box;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Size of the buffer that a worker reads into.
const ROOM: usize = 128 * 1024;

/// Bytes that are not HTTP/1.1, and in what way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// The buffer that all connections of a worker read into, one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Room(Rc<RefCell<Vec<u8>>>);

/// One connection.
pub(crate) struct Connection {
    line: Rc<Shared>,
    pub(crate) meter: Rc<Meter>,
}

/// What the reactor reads from by itself, while there is a guest.
pub(crate) struct Shared(RefCell<Occupied>);

struct Occupied {
    line: Line,
    #[cfg(target_os = "linux")]
    guest: Option<guest::Guest>,
}

/// The socket, and how far what comes from it has been read.
pub(crate) struct Line {
    stream: Box<dyn Stream>,
    room: Room,
    meter: Rc<Meter>,
    incoming: Incoming,
    /// Nothing more can be sent on it.
    over: bool,
}

impl Connection {
    pub(crate) fn new(stream: Box<dyn Stream>, room: Room, meter: Rc<Meter>) -> Self {
        let line = Line {
            stream,
            room,
            meter: Rc::clone(&meter),
            incoming: Incoming::default(),
            over: false,
        };
        let occupied = Occupied {
            line,
            #[cfg(target_os = "linux")]
            guest: None,
        };
        Self { line: Rc::new(Shared(RefCell::new(occupied))), meter }
    }

    /// Notices a close that came while nobody looked; true if a request may be sent at once.
    pub(crate) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        let line = &mut self.line.0.borrow_mut().line;
        // Between two responses nothing may come: neither an end nor a byte.
        let mut byte = [0];
        let mut buffer = ReadBuf::new(&mut byte);
        !line.over && Pin::new(&mut line.stream).poll_read(cx, &mut buffer).is_pending()
    }

    /// Sends `head` and `body`, and shows the response to `visit`.
    pub(crate) async fn exchange(
        &mut self,
        head: &[u8],
        body: &[u8],
        visit: &mut dyn Visit,
    ) -> Ended {
        let mut outgoing = Outgoing::new(head, body);
        self.line.0.borrow_mut().line.incoming = Incoming::default();
        let ended = poll_fn(|cx| {
            let line = &mut self.line.0.borrow_mut().line;
            // An answer may come before all is sent, and when sending fails.
            let sent = outgoing.poll(&mut line.stream, cx).is_ready();
            let ended = ready!(line.poll_read(cx, visit));
            line.over |= !(sent && outgoing.is_complete());
            Poll::Ready(ended)
        });
        ended.await
    }

    /// Reads the rest of a response, dropping what comes; ready with whether it ended so that the
    /// connection can serve another request.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let line = &mut self.line.0.borrow_mut().line;
        loop {
            match ready!(line.poll_read(cx, &mut Ignore)) {
                Ended::Early => {}
                Ended::Complete => return Poll::Ready(!line.over),
                Ended::Broken(_) | Ended::NoAnswer(_) => return Poll::Ready(false),
            }
        }
    }
}

impl Line {
    /// Looks at the memory that the next read will need.
    #[cfg(target_os = "linux")]
    fn near(&self) {
        self.meter.near();
        black_box((self.over, self.incoming.is_over()));
    }

    /// Reads until the response has ended, or the visitor has seen enough.
    fn poll_read(&mut self, cx: &mut Context<'_>, visit: &mut dyn Visit) -> Poll<Ended> {
        let room = self.room.clone();
        let mut room = room.0.borrow_mut();
        room.resize(ROOM, 0);
        loop {
            let mut buffer = ReadBuf::new(&mut room);
            let result = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
            let bytes = buffer.filled();
            let place = match result {
                Ok(()) if bytes.is_empty() => {
                    self.over = true;
                    return Poll::Ready(self.at_close());
                }
                Ok(()) => self.incoming.take(bytes, visit),
                Err(error) => {
                    self.over = true;
                    return Poll::Ready(self.broken(broken_by(error.kind())));
                }
            };
            return Poll::Ready(match place {
                Ok(Place::Amid) => continue,
                Ok(Place::Early) => Ended::Early,
                Ok(Place::End { reusable }) => {
                    self.over |= !reusable;
                    self.incoming = Incoming::default();
                    Ended::Complete
                }
                Err(Malformed(detail)) => {
                    self.over = true;
                    Ended::Broken(Failure::new(FailureKind::Protocol, detail))
                }
            });
        }
    }

    fn at_close(&self) -> Ended {
        if self.incoming.is_over() { Ended::Complete } else { self.broken(truncated()) }
    }

    fn broken(&self, failure: Failure) -> Ended {
        if self.meter.has_read() { Ended::Broken(failure) } else { Ended::NoAnswer(failure) }
    }
}
