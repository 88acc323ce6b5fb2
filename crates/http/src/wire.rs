//! A connection to a server, read by hyper or by our own lean reader.

use crate::connect::{Connect, Opened};
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) status: u16,
    pub(crate) location: Option<String>,
    pub(crate) encoding: Option<String>,
    /// What stands in the header `metadata`.
    pub(crate) metadata: Option<String>,
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
#[derive(Debug)]
pub(crate) enum Ended {
    /// As HTTP says it should.
    Complete,
    /// The visitor has seen enough; the body may have a tail.
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
#[derive(Clone, Debug)]
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

    /// The request for hyper.
    fn request(&self, own: &[(HeaderName, HeaderValue)], body: &Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body.clone()));
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
    pub(crate) proven: bool,
    /// How long the TLS handshake took.
    pub(crate) tls: Option<Duration>,
}

enum Reader {
    Lean(lean::Connection),
    Hyper(Box<hyper1::Connection>),
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

    pub(crate) fn meter(&self) -> &Rc<Meter> {
        match &self.reader {
            Reader::Lean(connection) => &connection.meter,
            Reader::Hyper(connection) => &connection.meter,
        }
    }

    /// Notices a close that came while nobody looked; true if a request may be sent at once.
    pub(crate) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.reader {
            Reader::Lean(connection) => connection.is_usable(cx),
            Reader::Hyper(connection) => connection.is_usable(cx),
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
        match &mut self.reader {
            Reader::Lean(connection) => {
                let head = lean::complete(&call.preamble, own, body);
                connection.exchange(&head, body, visit).await
            }
            // In a box: it is much larger than the other.
            Reader::Hyper(connection) => {
                Box::pin(connection.exchange(call.request(own, body), visit)).await
            }
        }
    }

    /// Reads the rest of a response, dropping what comes; ready with whether it ended so that the
    /// connection can serve another request.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        match &mut self.reader {
            Reader::Lean(connection) => connection.poll_drain(cx),
            Reader::Hyper(connection) => connection.poll_drain(cx),
        }
    }
}
