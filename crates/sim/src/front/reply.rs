//! Response bodies: whole, streamed, or broken off.

use crate::faults::{After, FaultPlan};
use crate::link::Link;
use crate::stream::TokenStream;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// A response body.
#[derive(Debug)]
pub(crate) enum SimBody {
    Whole(Option<Bytes>),
    Faulty(Faulty),
    Stream(Box<TokenStream>),
}

/// A whole body that is cut off.
#[derive(Debug)]
pub(crate) struct Faulty {
    bytes: Option<Bytes>,
    link: Arc<Link>,
    /// Whether the connection breaks by RST.
    reset: bool,
}

impl SimBody {
    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for SimBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let piece = match self.get_mut() {
            Self::Whole(bytes) => bytes.take().map(Ok),
            Self::Stream(stream) => ready!(stream.poll_piece(cx)),
            Self::Faulty(faulty) => ready!(faulty.poll_piece(cx)),
        };
        Poll::Ready(piece.map(|piece| piece.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Faulty(_) | Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl Faulty {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Some(bytes) = self.bytes.take() {
            self.link.mark_unflushed();
            return Poll::Ready(Some(Ok(bytes)));
        }
        ready!(self.link.poll_flushed(cx));
        if self.reset {
            self.link.reset();
        }
        Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())))
    }
}

/// Applies the faults that concern whole bodies; streams carry their own.
pub(super) trait WithFaults {
    fn with_faults(self, link: &Arc<Link>, faults: &FaultPlan) -> Self;
}

impl WithFaults for Response<SimBody> {
    fn with_faults(mut self, link: &Arc<Link>, faults: &FaultPlan) -> Self {
        let SimBody::Whole(bytes) = self.body_mut() else { return self };
        let length = bytes.as_ref().map_or(0, Bytes::len);
        // Either way, the connection waits for what is written from here on.
        link.mark_unflushed();
        if let Some((limit, reset)) = whole_cut(faults, length) {
            let mut bytes = bytes.take().unwrap_or_default();
            bytes.truncate(limit);
            let link = Arc::clone(link);
            let bytes = (!bytes.is_empty()).then_some(bytes);
            *self.body_mut() = SimBody::Faulty(Faulty { bytes, link, reset });
            self.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
        } else if let Some(how) = faults.close {
            link.close(how);
        }
        self
    }
}

/// Where a whole body of `length` bytes is cut, if it is, and whether by RST.
pub(super) fn whole_cut(faults: &FaultPlan, length: usize) -> Option<(usize, bool)> {
    let (After { after_tokens, after_bytes, .. }, reset) = faults.cut?;
    let limit = after_bytes.or(after_tokens.map(u64::from)).unwrap_or(0);
    let limit = usize::try_from(limit).ok().filter(|limit| *limit < length)?;
    Some((limit, reset))
}

fn with_type(status: u16, kind: &'static str, body: SimBody) -> Response<SimBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

pub(super) fn json(status: u16, body: impl Into<Bytes>) -> Response<SimBody> {
    with_type(status, "application/json", SimBody::whole(body))
}

pub(super) fn bytes(status: u16, body: impl Into<Bytes>) -> Response<SimBody> {
    with_type(status, "application/octet-stream", SimBody::whole(body))
}

pub(super) fn text(status: u16, body: impl Into<Bytes>) -> Response<SimBody> {
    with_type(status, "text/plain; charset=utf-8", SimBody::whole(body))
}

pub(super) fn stream(stream: TokenStream) -> Response<SimBody> {
    let body = SimBody::Stream(Box::new(stream));
    let mut response = with_type(200, "text/event-stream; charset=utf-8", body);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}
