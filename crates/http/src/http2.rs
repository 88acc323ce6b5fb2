//! HTTP/2: many requests at once on one connection, driven by whichever of them is polled.
//!
//! Nobody is spawned to drive a connection; as with HTTP/1.1, the requests do it. A read that brings
//! frames for several streams is followed by no other until each of those streams has taken its part, so
//! that the meter's stamp is the stamp of what they take: that of the read which completed their frame.

use crate::connect::Stream;
use crate::meter::Meter;
use crate::wire::{Ended, Head, Visit, broken_by, truncated};
use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use h2::{Reason, RecvStream};
use http::header::{CONTENT_ENCODING, LOCATION};
use http::{HeaderName, Request};
use servebench_core::{Failure, FailureKind, Progress};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize, Ordering::AcqRel, Ordering::Acquire, Ordering::Release,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a stream, and a connection, may have received before we took it. Events are taken at once; this
/// is room for those that a late client finds waiting.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 1 << 26;

/// Where vLLM counts the tokens of an answer in bytes.
const METADATA: HeaderName = HeaderName::from_static("metadata");

/// One connection, shared by the streams on it.
pub(crate) struct Link {
    sender: SendRequest<Bytes>,
    driver: RefCell<Driver>,
    /// One read was let through; no further one is, until the connection is driven again.
    has_read: Rc<Cell<bool>>,
    relay: Arc<Relay>,
    meter: Rc<Meter>,
    /// Exchanges that have not ended.
    open: Cell<usize>,
    /// It has carried a whole exchange.
    proven: Cell<bool>,
    next: Cell<u64>,
}

/// A connection, and how it ended.
enum Driver {
    Running(Box<Connection<Gated, Bytes>>),
    Over(Option<h2::Error>),
}

/// The stream below HTTP/2, whose reads are let through one at a time.
struct Gated {
    stream: Box<dyn Stream>,
    has_read: Rc<Cell<bool>>,
    relay: Arc<Relay>,
}

impl AsyncRead for Gated {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_read.get() {
            self.relay.held.store(true, Release);
            return Poll::Pending;
        }
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.has_read.set(true);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Gated {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Hands what wakes the connection on to one of the streams that wait.
#[derive(Debug, Default)]
struct Relay {
    /// The connection is to be driven.
    due: AtomicBool,
    /// A read was held back.
    held: AtomicBool,
    /// Streams that were woken for something of theirs and have not looked yet.
    undelivered: AtomicUsize,
    waiting: Mutex<BTreeMap<u64, Waker>>,
}

impl Relay {
    fn waiting(&self) -> MutexGuard<'_, BTreeMap<u64, Waker>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has one of the streams that wait drive the connection.
    fn pass_on(&self) {
        let waker = self.waiting().values().next().cloned();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether all streams have what the last read brought, so that there may be another.
    fn may_read(&self) -> bool {
        self.undelivered.load(Acquire) == 0
    }

    fn may_drive(&self) -> bool {
        self.due.load(Acquire) || (self.held.load(Acquire) && self.may_read())
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.due.store(true, Release);
        self.pass_on();
    }
}

/// Wakes one stream's task, and remembers that there is something for it.
#[derive(Debug)]
struct Bell {
    relay: Arc<Relay>,
    rung: AtomicBool,
    /// Nobody will look: what there is can wait.
    muted: AtomicBool,
    task: Mutex<Option<Waker>>,
}

impl Bell {
    fn new(relay: Arc<Relay>) -> Self {
        let (rung, muted) = (AtomicBool::new(false), AtomicBool::new(true));
        Self { relay, rung, muted, task: Mutex::default() }
    }

    /// What it was rung for is looked at now.
    fn answer(&self) {
        if self.rung.swap(false, AcqRel) {
            self.relay.undelivered.fetch_sub(1, AcqRel);
        }
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if self.muted.load(Acquire) {
            return;
        }
        if !self.rung.swap(true, AcqRel) {
            self.relay.undelivered.fetch_add(1, AcqRel);
        }
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(task) = task {
            task.wake();
        }
    }
}

impl Link {
    /// Greets the server over `stream`, and waits for its greeting.
    pub(crate) async fn open(stream: Box<dyn Stream>, meter: Rc<Meter>) -> io::Result<Rc<Self>> {
        let (has_read, relay) = (Rc::new(Cell::new(false)), Arc::<Relay>::default());
        let gated = Gated { stream, has_read: Rc::clone(&has_read), relay: Arc::clone(&relay) };
        let greeting = Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(gated);
        let (sender, driver) = greeting.await.map_err(no_http2)?;
        relay.due.store(true, Release);
        let this = Rc::new(Self {
            sender,
            driver: RefCell::new(Driver::Running(Box::new(driver))),
            has_read,
            relay,
            meter,
            open: Cell::new(0),
            proven: Cell::new(false),
            next: Cell::new(0),
        });
        let wait = this.wait();
        let greeted = poll_fn(|cx| wait.poll(cx, |_| this.poll_greeted())).await;
        greeted.map(|()| this)
    }

    fn poll_greeted(&self) -> Poll<io::Result<()>> {
        match &mut *self.driver.borrow_mut() {
            Driver::Over(error) => Poll::Ready(Err(error.take().map_or_else(unspoken, no_http2))),
            Driver::Running(_) if self.meter.has_read() => Poll::Ready(Ok(())),
            Driver::Running(_) => Poll::Pending,
        }
    }

    /// Drives the connection: writes what there is to write, and reads once if all that was read before
    /// was taken.
    fn drive(&self) {
        let mut driver = self.driver.borrow_mut();
        self.relay.due.store(false, Release);
        self.relay.held.store(false, Release);
        self.has_read.set(!self.relay.may_read());
        let Driver::Running(running) = &mut *driver else { return };
        let waker = Waker::from(Arc::clone(&self.relay));
        if let Poll::Ready(ended) =
            Pin::new(running.as_mut()).poll(&mut Context::from_waker(&waker))
        {
            *driver = Driver::Over(ended.err());
        }
    }

    /// Notices a close that came while nobody looked; true if the connection is open as far as can be
    /// told.
    pub(crate) fn is_usable(&self) -> bool {
        self.drive();
        if self.relay.may_drive() {
            self.relay.pass_on();
        }
        matches!(&*self.driver.borrow(), Driver::Running(_))
    }

    /// Whether one more request may be sent on it at once.
    pub(crate) fn has_room(&self) -> bool {
        self.open.get() < self.most()
    }

    /// Most requests at once that the server allows on a connection.
    pub(crate) fn most(&self) -> usize {
        self.sender.current_max_send_streams()
    }

    fn wait(self: &Rc<Self>) -> Wait {
        let id = self.next.replace(self.next.get() + 1);
        let bell = Arc::new(Bell::new(Arc::clone(&self.relay)));
        Wait { link: Rc::clone(self), id, waker: Waker::from(Arc::clone(&bell)), bell }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("open", &self.open).finish_non_exhaustive()
    }
}

/// A place among those that wait on a connection, and drive it.
struct Wait {
    link: Rc<Link>,
    id: u64,
    bell: Arc<Bell>,
    waker: Waker,
}

impl Wait {
    /// Polls something of this stream's, driving the connection as long as that has not happened. After
    /// that the stream must be polled again, leave or be dropped.
    fn poll<T>(
        &self,
        cx: &mut Context<'_>,
        mut own: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let relay = &self.link.relay;
        *self.bell.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
        self.bell.muted.store(false, Release);
        loop {
            self.bell.answer();
            if let Poll::Ready(value) = own(&mut Context::from_waker(&self.waker)) {
                self.step_out();
                return Poll::Ready(value);
            }
            if !relay.may_drive() {
                relay.waiting().insert(self.id, cx.waker().clone());
                return Poll::Pending;
            }
            self.link.drive();
        }
    }

    /// Is not to be woken.
    fn step_out(&self) {
        self.bell.muted.store(true, Release);
        self.bell.answer();
        self.link.relay.waiting().remove(&self.id);
    }

    /// Waits no more, so that somebody else must drive.
    fn leave(&self) {
        self.step_out();
        if self.link.relay.may_drive() {
            self.link.relay.pass_on();
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.leave();
    }
}

/// One exchange on a shared connection.
pub(crate) struct Exchange {
    /// What the request it serves has seen of the connection.
    pub(crate) meter: Rc<Meter>,
    link: Rc<Link>,
    /// A body that has not ended. Before the place in the line, so that dropping it resets the stream
    /// while somebody is left to send that.
    body: Option<RecvStream>,
    wait: Wait,
}

impl Exchange {
    /// A place for one request on `link`.
    pub(crate) fn on(link: &Rc<Link>) -> Self {
        link.open.set(link.open.get() + 1);
        let meter = Rc::new(Meter::like(&link.meter));
        Self { meter, link: Rc::clone(link), body: None, wait: link.wait() }
    }

    pub(crate) fn link(&self) -> &Rc<Link> {
        &self.link
    }

    pub(crate) fn is_proven(&self) -> bool {
        self.link.proven.get()
    }

    pub(crate) fn prove(&self) {
        self.link.proven.set(true);
    }

    /// Waits no more: what is left of the body comes as others drive the connection.
    pub(crate) fn rest(&self) {
        self.wait.leave();
    }

    /// Sends a request, and shows the response to `visit`.
    pub(crate) async fn exchange(
        &mut self,
        request: Request<()>,
        body: Bytes,
        visit: &mut dyn Visit,
    ) -> Ended {
        let mut sender = self.link.sender.clone();
        if let Err(error) = poll_fn(|cx| self.wait.poll(cx, |cx| sender.poll_ready(cx))).await {
            return Ended::NoAnswer(self.failure(&error));
        }
        self.link.meter.expect_write();
        let has_body = !body.is_empty();
        let (mut response, mut sending) = match sender.send_request(request, !has_body) {
            Ok(both) => both,
            Err(error) => return Ended::NoAnswer(self.failure(&error)),
        };
        // What the server has no room for yet waits in the connection, as a reference to the body.
        if has_body && let Err(error) = sending.send_data(body, true) {
            return Ended::NoAnswer(self.failure(&error));
        }
        self.link.relay.due.store(true, Release);
        let (link, meter) = (Rc::clone(&self.link), Rc::clone(&self.meter));
        let response = poll_fn(|cx| {
            let response = self.wait.poll(cx, |cx| Pin::new(&mut response).poll(cx));
            meter.take_write(&link.meter);
            response
        });
        let response = match response.await {
            Ok(response) => response,
            Err(error) => return Ended::NoAnswer(self.failure(&error)),
        };
        self.meter.take_read(&self.link.meter);
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
            match poll_fn(|cx| self.poll_data(cx)).await {
                Some(Ok(data)) if data.is_empty() => {}
                Some(Ok(data)) => {
                    self.meter.take_read(&self.link.meter);
                    if visit.data(&data) == Progress::Done {
                        return Ended::Early;
                    }
                }
                Some(Err(error)) => return Ended::Broken(self.failure(&error)),
                None => return Ended::Complete,
            }
        }
    }

    /// The next bytes of the body; `None` at its end.
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let data = ready!(self.wait.poll(cx, |cx| body.poll_data(cx)));
        match &data {
            Some(Ok(data)) => {
                // Fails only where the stream is over.
                drop(body.flow_control().release_capacity(data.len()));
            }
            Some(Err(_)) | None => self.body = None,
        }
        Poll::Ready(data)
    }

    /// Reads the rest of a response, dropping what comes; ready with whether it ended properly.
    pub(crate) fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        loop {
            match ready!(self.poll_data(cx)) {
                Some(Ok(_)) => {}
                Some(Err(_)) => return Poll::Ready(false),
                None => return Poll::Ready(true),
            }
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.link.open.set(self.link.open.get() - 1);
        if self.body.take().is_some() {
            // The reset is sent by whoever drives next.
            self.link.relay.due.store(true, Release);
        }
    }
}

impl Exchange {
    /// What an error means for a reply, with the socket's own words where there are some.
    fn failure(&self, error: &h2::Error) -> Failure {
        if let Some(kind) = self.link.meter.error() {
            return broken_by(kind);
        }
        if error.is_io() || (error.is_go_away() && error.reason() == Some(Reason::NO_ERROR)) {
            return truncated();
        }
        let kind = if error.is_remote() { FailureKind::Reset } else { FailureKind::Protocol };
        Failure::new(kind, format!("HTTP/2: {error}"))
    }
}

/// The peer does not answer as HTTP/2 has it.
fn no_http2(error: h2::Error) -> io::Error {
    match error.into_io() {
        Some(io) if io.kind() != io::ErrorKind::BrokenPipe => io,
        _ => unspoken(),
    }
}

fn unspoken() -> io::Error {
    let message = "the server does not speak HTTP/2 (leave --http2 out)";
    io::Error::new(io::ErrorKind::Unsupported, message)
}
