//! A connection to a server, read by hyper or by our own lean reader.

use crate::coding::{Coding, Decoded};
use crate::connect::{Connect, Opened, Spoken};
use crate::http2::{self, Link};
use crate::hyper1;
use crate::lean;
use crate::meter::{Meter, Tap};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use servebench_core::{Clock, Failure, FailureKind, Progress};
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Who reads HTTP/1.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpReader {
    /// Our own reader in the clear, hyper under TLS.
    #[default]
    Auto,
    /// Our own reader: no copy, no buffer per connection.
    Lean,
    /// hyper.
    Hyper,
}

/// What matters of a response's head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// HTTP status.
    pub status: u16,
    /// Where a redirect leads.
    pub location: Option<String>,
    /// How the body is encoded (`content-encoding`).
    pub encoding: Option<String>,
    /// What stands in the header `metadata`.
    pub metadata: Option<String>,
}

/// Sees a response as it comes.
pub(crate) trait Visit {
    /// Its head is complete. After [`Progress::Done`] nothing is shown any more.
    fn head(&mut self, head: &Head) -> Progress;

    /// The next bytes of its body, never none.
    fn data(&mut self, bytes: &[u8]) -> Progress;
}

/// Sees nothing.
pub(crate) struct Ignore;

impl Visit for Ignore {
    fn head(&mut self, _head: &Head) -> Progress {
        Progress::More
    }

    fn data(&mut self, _bytes: &[u8]) -> Progress {
        Progress::More
    }
}

/// How an exchange ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As HTTP says it should.
    Complete,
    /// Enough was seen; the body may have a tail.
    Early,
    /// Amid an answer.
    Broken(Failure),
    /// Before one byte of an answer came.
    NoAnswer(Failure),
}

/// What a socket error means for a reply.
pub(crate) fn broken_by(kind: io::ErrorKind) -> Failure {
    match kind {
        io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => {
            let detail = format!("connection reset by the server ({kind})");
            Failure::new(FailureKind::Reset, detail)
        }
        io::ErrorKind::UnexpectedEof => truncated(),
        kind => Failure::new(FailureKind::Reset, format!("connection broke: {kind}")),
    }
}

/// The connection was closed too early.
pub(crate) fn truncated() -> Failure {
    Failure::new(
        FailureKind::Truncated,
        "truncated: the connection was closed before the reply was complete",
    )
}

/// What all requests of a kind have in common.
#[derive(Clone)]
pub(crate) struct Call {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    preamble: Vec<u8>,
}

impl Call {
    pub(crate) fn new(method: Method, uri: Uri, headers: HeaderMap) -> Self {
        let preamble = lean::preamble(&method, &uri, &headers);
        Self { method, uri, headers, preamble }
    }

    /// The head of a request with header lines of its `own`, as HTTP/1.1 writes it.
    pub(crate) fn head(&self, own: &[(HeaderName, HeaderValue)], body: &[u8]) -> Vec<u8> {
        lean::complete(&self.preamble, own, body)
    }

    /// The request for a library.
    fn request<B>(&self, own: &[(HeaderName, HeaderValue)], body: B) -> Request<B> {
        let mut request = Request::new(body);
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().extend(own.iter().cloned());
        request
    }
}

/// One connection.
pub(crate) struct Connection {
    reader: Reader,
    /// True once it has carried a whole exchange.
    proven: bool,
    /// How long the TLS handshake took.
    pub(crate) tls: Option<Duration>,
}

enum Reader {
    Lean(lean::Connection),
    Hyper(Box<hyper1::Connection>),
    /// One exchange of several on a connection.
    Http2(Box<http2::Exchange>),
}

impl Connection {
    /// Opens one, to be read by `reader` (into `room`, if that is ours).
    pub(crate) async fn open<K: Connect, C: Clock + Unpin>(
        connect: &K,
        tap: Tap<C>,
        reader: HttpReader,
        room: &lean::Room,
    ) -> io::Result<Self> {
        let meter = Rc::clone(&tap.meter);
        let Opened { stream, tls } = connect.connect(tap).await?;
        if connect.spoken() == Spoken::Http2 {
            let link = Link::open(stream, meter).await?;
            return Ok(Self { tls, ..Self::on(&link) });
        }
        let lean = match reader {
            HttpReader::Auto => tls.is_none(),
            HttpReader::Lean => true,
            HttpReader::Hyper => false,
        };
        let reader = if lean {
            Reader::Lean(lean::Connection::new(stream, room.clone(), meter))
        } else {
            Reader::Hyper(Box::new(hyper1::Connection::new(stream, meter).await?))
        };
        Ok(Self { reader, proven: false, tls })
    }

    /// A place for one exchange on a connection that others use, too.
    pub(crate) fn on(link: &Rc<Link>) -> Self {
        let exchange = Box::new(http2::Exchange::on(link));
        Self { reader: Reader::Http2(exchange), proven: false, tls: None }
    }

    /// The connection that this is an exchange on, where others can be on it as well.
    pub(crate) fn link(&self) -> Option<&Rc<Link>> {
        match &self.reader {
            Reader::Http2(exchange) => Some(exchange.link()),
            Reader::Lean(_) | Reader::Hyper(_) => None,
        }
    }

    /// Whether it has carried a whole exchange.
    pub(crate) fn is_proven(&self) -> bool {
        match &self.reader {
            Reader::Http2(exchange) => exchange.is_proven(),
            Reader::Lean(_) | Reader::Hyper(_) => self.proven,
        }
    }

    /// It has carried one.
    pub(crate) fn prove(&mut self) {
        self.proven = true;
        if let Reader::Http2(exchange) = &self.reader {
            exchange.prove();
        }
    }

    pub(crate) fn meter(&self) -> &Rc<Meter> {
        match &self.reader {
            Reader::Http2(exchange) => &exchange.meter,
            Reader::Lean(connection) => &connection.meter,
            Reader::Hyper(connection) => &connection.meter,
        }
    }

    /// Notices a close that came while nobody looked; true if a request may be sent at once.
    pub(crate) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.reader {
            Reader::Lean(connection) => connection.is_usable(cx),
            Reader::Hyper(connection) => connection.is_usable(cx),
            Reader::Http2(exchange) => exchange.link().is_usable(),
        }
    }

    /// Whether the thread's reactor can read the next response by itself, for a guest.
    #[cfg(target_os = "linux")]
    pub(crate) fn invite(&self) -> Option<lean::Invitation> {
        match &self.reader {
            Reader::Lean(connection) => connection.invite(),
            Reader::Hyper(_) | Reader::Http2(_) => None,
        }
    }

    /// Sends a request with header lines of its `own`, and shows the response to `visit`.
    pub(crate) async fn exchange(
        &mut self,
        call: &Call,
        own: &[(HeaderName, HeaderValue)],
        body: &Bytes,
        visit: &mut dyn Visit,
    ) -> Ended {
        let mut coding = Coding::default();
        let mut visit = Decoded { coding: &mut coding, visit };
        let ended = match &mut self.reader {
            Reader::Lean(connection) => {
                let head = call.head(own, body);
                connection.exchange(&head, body, &mut visit).await
            }
            // In boxes: they are much larger than the other.
            Reader::Hyper(connection) => {
                let request = call.request(own, Full::new(body.clone()));
                Box::pin(connection.exchange(request, &mut visit)).await
            }
            Reader::Http2(exchange) => {
                let request = call.request(own, ());
                Box::pin(exchange.exchange(request, body.clone(), &mut visit)).await
            }
        };
        coding.end(ended)
    }

    /// Reads the rest of a response, dropping what comes; ready with whether it ended so that the
    /// connection can serve another request.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        match &mut self.reader {
            Reader::Lean(connection) => connection.poll_drain(cx),
            Reader::Hyper(connection) => connection.poll_drain(cx),
            Reader::Http2(exchange) => exchange.poll_drain(cx),
        }
    }

    /// It is put aside: what is left of its response comes while others are served.
    pub(crate) fn rest(&self) {
        if let Reader::Http2(exchange) = &self.reader {
            exchange.rest();
        }
    }
}
