//! What happens to a request on the wire, for those who want to keep it, and the same once more.

use crate::reading::{Reading, Receipt};
use crate::wire::{Ended, Head};
use servebench_core::{Failure, Progress, Protocol, ReadLag, Reply, Request, Stamp};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// What happens to one request, as its decoder sees it: all that a [`Reply`] is made of.
///
/// In the order in which it happens: one `Began`; then, for each time that it is sent, an `Opened` unless
/// a warm connection is used, a `Head`, and `Data` until there is no more; an `Again` before it is sent once
/// more; and at last one `Over`, unless the request is cancelled.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// It is about to be sent.
    Began {
        /// When.
        at: Stamp,
        /// Which of several servers it goes to.
        target: Option<u32>,
        /// Whether the length of each chunk's text is kept.
        keep_pieces: bool,
    },
    /// Connecting is over, whether it succeeded or not.
    Opened {
        /// How long this request has spent connecting so far.
        took: Duration,
        /// The part of it that TLS handshakes took.
        tls: Option<Duration>,
    },
    /// It is sent once more, on another connection.
    Again {
        /// When the first byte of it had been handed to the socket.
        sent: Option<Stamp>,
        /// Dead kept-alive connections that were replaced so far.
        reconnects: u32,
        /// Times that it was sent again for other reasons.
        retries: u32,
        /// Why: no byte of an answer had come.
        failure: Cow<'a, Failure>,
    },
    /// The head of a response is complete.
    Head {
        /// When its last byte was received.
        at: Stamp,
        /// What matters of it.
        head: Cow<'a, Head>,
    },
    /// Bytes of a response's body were read.
    Data {
        /// When they were received.
        receipt: Receipt,
        /// The bytes, never none.
        bytes: &'a [u8],
    },
    /// It is over.
    Over {
        /// When the last byte of the response was received.
        at: Stamp,
        /// How.
        ended: Cow<'a, Ended>,
        /// When the first byte of the request was handed to the socket.
        sent: Option<Stamp>,
        /// How long received bytes waited for the client.
        lag: Option<ReadLag>,
    },
}

/// Sees everything that happens to the requests of one worker.
///
/// It is called between two reads of a socket: it must neither wait nor take long.
pub trait Observe {
    /// Something happened to `request`.
    fn note(&self, request: &Request, event: &Event<'_>);
}

/// Makes a reply out of the events of its request, as [`HttpBackend`](crate::HttpBackend) did when they
/// happened: both go through the same code.
///
/// Any events are taken, in any order; what cannot have happened changes nothing.
pub struct Replay {
    protocol: Arc<dyn Protocol>,
    request: Request,
    reply: Reply,
    /// `None` once the exchange is over.
    reading: Option<Reading>,
    /// No more is wanted of the body.
    done: bool,
}

impl Replay {
    /// The reply to `request` before anything has happened. Of the request, the length asked for and those
    /// fields of the body count that say what was asked for.
    pub fn new(protocol: Arc<dyn Protocol>, request: Request) -> Self {
        let reading = Some(Reading::new(protocol.decoder(&request)));
        Self { protocol, request, reply: Reply::default(), reading, done: false }
    }

    /// Takes the next event.
    pub fn take(&mut self, event: &Event<'_>) {
        let (Some(reading), reply) = (&mut self.reading, &mut self.reply) else { return };
        match event {
            Event::Began { target, keep_pieces, .. } => {
                reply.keep_pieces = *keep_pieces;
                if target.is_some() {
                    reply.rare_mut().target = *target;
                }
            }
            Event::Opened { took, tls } => {
                let rare = reply.rare_mut();
                (rare.connect, rare.tls) = (Some(*took), *tls);
            }
            Event::Again { sent, reconnects, retries, .. } => {
                reply.sent = *sent;
                let rare = reply.rare_mut();
                (rare.reconnects, rare.retries) = (*reconnects, *retries);
                *reading = Reading::new(self.protocol.decoder(&self.request));
                self.done = false;
            }
            Event::Head { at, head } => {
                self.done = reading.head(*at, head, reply) == Progress::Done;
            }
            Event::Data { receipt, bytes } if !self.done && !bytes.is_empty() => {
                self.done = reading.data(*receipt, bytes, reply) == Progress::Done;
            }
            Event::Data { .. } => {}
            Event::Over { at, ended, sent, lag } => {
                (reply.sent, reply.read_lag) = (*sent, *lag);
                if let Some(reading) = self.reading.take() {
                    reading.end(*at, ended, &mut self.reply);
                }
            }
        }
    }

    /// What the events have come to so far.
    pub fn reply(&self) -> &Reply {
        &self.reply
    }

    /// Whether the exchange is over; what comes then changes nothing.
    pub fn is_over(&self) -> bool {
        self.reading.is_none()
    }

    /// What the events have come to.
    pub fn into_reply(self) -> Reply {
        self.reply
    }
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replay").field("reply", &self.reply).finish_non_exhaustive()
    }
}
