//! A request, written as the connection takes it.

use crate::connect::Stream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// The head of a request, but for the lines that each request has of its own.
pub(crate) fn preamble(method: &Method, uri: &Uri, headers: &HeaderMap) -> Vec<u8> {
    // A proxy is told the whole of it.
    let place = if uri.scheme().is_some() {
        uri.to_string()
    } else {
        uri.path_and_query().map_or("/", |path| path.as_str()).to_owned()
    };
    let mut head = format!("{method} {place} HTTP/1.1\r\n").into_bytes();
    for (name, value) in headers {
        if name != header::CONTENT_LENGTH {
            line(&mut head, name, value);
        }
    }
    head
}

/// Appends one header line.
fn line(head: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    head.extend_from_slice(name.as_str().as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value.as_bytes());
    head.extend_from_slice(b"\r\n");
}

/// The whole head of a request with header lines of its `own` and a body.
pub(crate) fn complete(preamble: &[u8], own: &[(HeaderName, HeaderValue)], body: &[u8]) -> Vec<u8> {
    let mut head = Vec::with_capacity(preamble.len() + 128);
    head.extend_from_slice(preamble);
    for (name, value) in own {
        line(&mut head, name, value);
    }
    head.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
    head
}

/// What is left to write of a request.
pub(super) struct Outgoing<'a> {
    head: &'a [u8],
    body: &'a [u8],
    /// Writing failed; what was written may still be answered.
    failed: bool,
}

impl<'a> Outgoing<'a> {
    pub(super) fn new(head: &'a [u8], body: &'a [u8]) -> Self {
        Self { head, body, failed: false }
    }

    /// True when all of it was written.
    pub(super) fn is_complete(&self) -> bool {
        self.head.is_empty() && self.body.is_empty()
    }

    /// Writes what the connection takes; ready when nothing more will be written.
    pub(super) fn poll(&mut self, stream: &mut Box<dyn Stream>, cx: &mut Context<'_>) -> Poll<()> {
        while !self.is_complete() && !self.failed {
            let parts = [IoSlice::new(self.head), IoSlice::new(self.body)];
            let parts = if self.head.is_empty() { &parts[1..] } else { &parts[..] };
            match ready!(Pin::new(&mut *stream).poll_write_vectored(cx, parts)) {
                Ok(0) => self.failed = true,
                Ok(count) => self.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.failed = true,
            }
        }
        // The stream under TLS buffers.
        if self.is_complete() && Pin::new(&mut *stream).poll_flush(cx).is_pending() {
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn advance(&mut self, count: usize) {
        let of_head = count.min(self.head.len());
        self.head = &self.head[of_head..];
        self.body = &self.body[count - of_head..];
    }
}
