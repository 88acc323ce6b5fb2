//! One HTTP/1.1 connection that hyper reads, driven by the request that uses it.
//!
//! hyper splits a connection into a handle and a driver, and expects the driver to be spawned. Here
//! the request polls both: no task switch between a read and its decoding, and a frame is taken
//! before the driver reads on, so that the meter's stamp is the stamp of that frame.

use crate::connect::Stream;
use crate::meter::Meter;
use crate::wire::{Ended, Head, Visit, broken_by, truncated};
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, LOCATION};
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use servebench_core::{Failure, FailureKind, Progress};
use std::error::Error;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// Largest read buffer of a connection. hyper grows its buffer towards this while reads fill it.
const READ_BUFFER: usize = 64 * 1024;

/// Where vLLM counts the tokens of an answer in bytes.
const METADATA: HeaderName = HeaderName::from_static("metadata");

pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection is over.
    driver: Option<Pin<Box<dyn Future<Output = hyper::Result<()>>>>>,
    pub(crate) meter: Rc<Meter>,
    /// A body that has not ended.
    body: Option<Incoming>,
}

impl Connection {
    pub(crate) async fn new(stream: Box<dyn Stream>, meter: Rc<Meter>) -> io::Result<Self> {
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(READ_BUFFER)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(io::Error::other)?;
        let mut this = Self { sender, driver: Some(Box::pin(driver)), meter, body: None };
        poll_fn(|cx| {
            this.drive(cx);
            Poll::Ready(())
        })
        .await;
        Ok(this)
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

    /// Sends a request, and shows the response to `visit`.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        visit: &mut dyn Visit,
    ) -> Ended {
        let response = match self.send(request).await {
            Ok(response) => response,
            Err(error) if !self.meter.has_read() => return Ended::NoAnswer(self.failure(&error)),
            Err(error) => return Ended::Broken(self.failure(&error)),
        };
        let text = |name: HeaderName| {
            let value = response.headers().get(name)?;
            Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let head = Head {
            status: response.status().as_u16(),
            location: text(LOCATION),
            encoding: text(CONTENT_ENCODING),
            metadata: text(METADATA),
        };
        self.body = Some(response.into_body());
        if visit.head(&head) == Progress::Done {
            return Ended::Early;
        }
        loop {
            match poll_fn(|cx| self.poll_frame(cx)).await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref().filter(|data| !data.is_empty())
                        && visit.data(data) == Progress::Done
                    {
                        return Ended::Early;
                    }
                }
                Some(Err(error)) => return Ended::Broken(self.failure(&error)),
                None => return Ended::Complete,
            }
        }
    }

    /// Sends a request and waits for the response head.
    async fn send(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
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

    /// The next frame of the body; `None` at its end.
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        self.drive(cx);
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let frame = ready!(Pin::new(body).poll_frame(cx));
        if frame.is_none() {
            self.body = None;
        }
        Poll::Ready(frame)
    }

    /// Reads the rest of a response, dropping what comes; ready with whether it ended properly.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            match ready!(self.poll_frame(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) => return Poll::Ready(false),
                None => return Poll::Ready(true),
            }
        }
    }

    /// What a hyper error means, with the socket's own words where there are some.
    fn failure(&self, error: &hyper::Error) -> Failure {
        if let Some(kind) = self.meter.error() {
            return broken_by(kind);
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
