//! One HTTP/1.1 connection, driven by the request that uses it.
//!
//! hyper splits a connection into a handle and a driver, and expects the driver to be spawned. Here
//! the request polls both: no task switch between a read and its decoding, and a frame is taken
//! before the driver reads on, so that the meter's stamp is the stamp of that frame.

use crate::connect::Connect;
use crate::meter::{Meter, Metered};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use servebench_core::{Clock, Failure, FailureKind};
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Largest read buffer of a connection. hyper grows its buffer towards this while reads fill it.
const READ_BUFFER: usize = 64 * 1024;

pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection is over.
    driver: Option<Pin<Box<dyn Future<Output = hyper::Result<()>>>>>,
    pub(crate) meter: Rc<Meter>,
    /// True once it has carried a whole exchange.
    pub(crate) proven: bool,
}

impl Connection {
    pub(crate) async fn open<K: Connect, C: Clock + Unpin>(
        connect: &K,
        clock: &C,
    ) -> io::Result<Self> {
        let stream = connect.connect().await?;
        let meter = Rc::new(Meter::default());
        let io = TokioIo::new(Metered::new(stream, clock.clone(), Rc::clone(&meter)));
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(READ_BUFFER)
            .handshake(io)
            .await
            .map_err(io::Error::other)?;
        Ok(Self { sender, driver: Some(Box::pin(driver)), meter, proven: false })
    }

    fn drive(&mut self, cx: &mut Context<'_>) {
        if let Some(driver) = &mut self.driver
            && driver.as_mut().poll(cx).is_ready()
        {
            // Its error, if any, also reaches the response or the body, where it is reported.
            self.driver = None;
        }
    }

    /// Notices a close that came while nobody looked; true if a request may be sent at once.
    pub(crate) fn is_usable(&mut self, cx: &mut Context<'_>) -> bool {
        self.drive(cx);
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Sends a request and waits for the response head.
    pub(crate) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> hyper::Result<Response<Incoming>> {
        poll_fn(|cx| {
            self.drive(cx);
            self.sender.poll_ready(cx)
        })
        .await?;
        let mut response = pin!(self.sender.send_request(request));
        let driver = &mut self.driver;
        poll_fn(|cx| {
            if let Some(running) = driver
                && running.as_mut().poll(cx).is_ready()
            {
                *driver = None;
            }
            response.as_mut().poll(cx)
        })
        .await
    }

    /// The next frame of `body`; `None` at its end.
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Incoming,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        self.drive(cx);
        Pin::new(body).poll_frame(cx)
    }

    /// Reads `body` to its end, dropping what comes; ready with whether it ended properly.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>, body: &mut Incoming) -> Poll<bool> {
        loop {
            match ready!(self.poll_frame(cx, body)) {
                Some(Ok(_)) => {}
                Some(Err(_)) => return Poll::Ready(false),
                None => return Poll::Ready(true),
            }
        }
    }

    /// What a hyper error means, with the socket's own words where there are some.
    pub(crate) fn failure(&self, error: &hyper::Error) -> Failure {
        if let Some(kind) = self.meter.error() {
            return match kind {
                io::ErrorKind::ConnectionReset
                | io::ErrorKind::ConnectionAborted
                | io::ErrorKind::BrokenPipe => Failure::new(
                    FailureKind::Reset,
                    format!("connection reset by the server ({kind})"),
                ),
                io::ErrorKind::UnexpectedEof => truncated(),
                kind => Failure::new(FailureKind::Reset, format!("connection broke: {kind}")),
            };
        }
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        let mut words = Vec::new();
        while let Some(this) = cause {
            if let Some(io) = this.downcast_ref::<io::Error>()
                && io.kind() == io::ErrorKind::UnexpectedEof
            {
                return truncated();
            }
            words.push(this.to_string());
            cause = this.source();
        }
        if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
            return truncated();
        }
        Failure::new(FailureKind::Protocol, words.join(": "))
    }
}

fn truncated() -> Failure {
    Failure::new(
        FailureKind::Truncated,
        "truncated: the connection was closed before the reply was complete",
    )
}
