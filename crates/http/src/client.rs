//! The HTTP engine: one per worker, for every protocol.

use crate::connect::{Connect, Spoken};
use crate::lean::Room;
use crate::limits::Limits;
use crate::meter::Tap;
use crate::observe::{Event, Observe};
use crate::pool::Pool;
use crate::reading::{Reading, Receipt, Shown};
use crate::secrets::Secrets;
use crate::target::Target;
use crate::wire::{Call, Connection, Ended, Head, Visit};
use futures_util::future::{Either, join_all, select};
use http::{HeaderName, HeaderValue, Method, header};
use servebench_core::{
    Backend, Clock, Failure, FailureKind, Progress, Protocol, Reply, Request, Stamp, unless,
};
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Debug;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How long a finished request waits for the tail of its body (the last chunk usually comes with or
/// right behind `[DONE]`), so that its connection can serve the next one.
const TAIL_GRACE: Duration = Duration::from_millis(2);

/// Connections that are opened at the same time before a run, and how long that may take in all.
const WARM_BATCH: usize = 64;
const WARM_LIMIT: Duration = Duration::from_secs(30);

/// What a server may take to accept a connection: the system completes the handshake without it, and a
/// run that began at once would find it busy with that.
const SETTLING: Duration = Duration::from_micros(20);

/// Sends requests over kept-alive connections: over HTTP/1.1 one at a time on each, over HTTP/2 as many
/// at once as the server allows. Belongs to one worker.
///
/// A request takes a warm connection if there is one, else it connects, and
/// [`Rare::connect`](servebench_core::Rare::connect) says how long that took. A reused connection
/// that turns out dead before one byte of an answer came is replaced and the request sent once more,
/// counted in [`Rare::reconnects`](servebench_core::Rare::reconnects); nothing else is repeated, unless
/// [`Limits::retries`] wants it.
pub struct HttpBackend<C, K> {
    clock: C,
    connect: K,
    protocol: Arc<dyn Protocol>,
    call: Call,
    limits: Limits,
    pool: RefCell<Pool>,
    tap: Tap<C>,
    room: Room,
    observer: Option<Rc<dyn Observe>>,
    secrets: Secrets,
    /// Held while a connection is opened that others can be on as well.
    opening: tokio::sync::Mutex<()>,
}

impl<C: Debug, K: Debug> Debug for HttpBackend<C, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers stay out: they hold secrets.
        f.debug_struct("HttpBackend")
            .field("connect", &self.connect)
            .field("protocol", &self.protocol)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<C: Clock + Unpin, K: Connect> HttpBackend<C, K> {
    /// An engine that speaks `protocol` with `target`.
    pub fn new(
        clock: C,
        connect: K,
        target: &Target,
        protocol: Arc<dyn Protocol>,
        limits: Limits,
    ) -> Self {
        let mut headers = match protocol.content_type() {
            "application/json" => target.headers_for_json(),
            kind => target.headers_for(kind),
        };
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        let spoken = connect.spoken();
        let call = target.call(Method::POST, protocol.path(), headers, &spoken);
        Self {
            tap: Tap::new(clock.clone()),
            clock,
            connect,
            protocol,
            call,
            limits,
            pool: RefCell::default(),
            room: Room::default(),
            observer: None,
            secrets: target.secrets_with(&spoken),
            opening: tokio::sync::Mutex::default(),
        }
    }

    /// The same engine, with someone who sees everything that happens to its requests.
    #[must_use]
    pub fn with_observer(self, observer: Rc<dyn Observe>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    async fn acquire(&self) -> Option<Connection> {
        let now = self.clock.now();
        poll_fn(|cx| Poll::Ready(self.pool.borrow_mut().take(now, cx))).await
    }

    async fn open_one(&self) -> io::Result<Connection> {
        let tap = self.tap.another();
        Connection::open(&self.connect, tap, self.limits.reader, &self.room).await
    }

    /// Opens a connection, unless another request is about to open one that this one can be on as well.
    async fn open_or_join(&self) -> io::Result<Connection> {
        if !self.limits.keep_alive || self.connect.spoken() != Spoken::Http2 {
            return self.open_one().await;
        }
        let _first = self.opening.lock().await;
        if let Some(connection) = self.acquire().await {
            return Ok(connection);
        }
        let connection = self.open_one().await?;
        if let Some(link) = connection.link() {
            self.pool.borrow_mut().share(link);
        }
        Ok(connection)
    }

    async fn open(
        &self,
        start: Stamp,
        reply: &mut Reply,
        witness: Witness<'_>,
    ) -> Result<Connection, Failure> {
        let began = self.clock.now();
        let opening = pin!(self.open_or_join());
        let watch = pin!(self.limits.watch_connect(&self.clock, start, began));
        let result = match select(opening, watch).await {
            Either::Left((result, _)) => result.map_err(|error| no_connection(&error)),
            Either::Right((failure, _)) => Err(failure),
        };
        let rare = reply.rare_mut();
        rare.connect = Some(rare.connect.unwrap_or_default() + self.clock.now().since(began));
        if let Ok(Connection { tls: Some(tls), .. }) = &result {
            rare.tls = Some(rare.tls.unwrap_or_default() + *tls);
        }
        let (took, tls) = (rare.connect.unwrap_or_default(), rare.tls);
        witness.note(|| Event::Opened { took, tls });
        result
    }

    /// Whether a request that began at `start` is to be sent again since it failed before one byte of an
    /// answer; then after a pause, and counted.
    async fn retries(&self, start: Stamp, reply: &mut Reply) -> bool {
        let (nth, now) = (reply.rare().retries, self.clock.now());
        let Some(until) = self.limits.pause(nth, start, now) else { return false };
        reply.rare_mut().retries += 1;
        self.clock.sleep_until(until).await;
        true
    }

    /// Sends the request of `witness`, and lets `reading` see the response.
    async fn exchange(
        &self,
        connection: &mut Connection,
        own: &[(HeaderName, HeaderValue)],
        reading: &mut Reading,
        reply: &mut Reply,
        witness: Witness<'_>,
    ) -> Ended {
        let body = &witness.request.body;
        // An observer sees the request as well: it stays where that is.
        #[cfg(target_os = "linux")]
        if let (None, Some(invitation)) = (self.observer.as_ref(), connection.invite()) {
            let head = self.call.head(own, body);
            return invitation.accept(reading, reply).exchange(&head, body).await;
        }
        let meter = Rc::clone(connection.meter());
        let shown = Shown { meter: &meter, reading, reply };
        let mut visit = Witnessed { shown, witness };
        connection.exchange(&self.call, own, body, &mut visit).await
    }

    /// Gives the connection back: at once if its body has ended, else when that has happened.
    async fn recycle(&self, mut connection: Connection, ended: bool) {
        if !self.limits.keep_alive {
            return;
        }
        connection.prove();
        if ended {
            return self.pool.borrow_mut().put(connection);
        }
        let until = Stamp::from(self.clock.now().offset() + TAIL_GRACE);
        let tail = pin!(poll_fn(|cx| connection.poll_drain(cx)));
        let drained = match select(tail, pin!(self.clock.sleep_until(until))).await {
            Either::Left((proper, _)) => Some(proper),
            Either::Right(_) => None,
        };
        match drained {
            Some(true) => self.pool.borrow_mut().put(connection),
            Some(false) => {}
            None => self.pool.borrow_mut().linger(connection, until),
        }
    }
}

/// The header lines that a request has of its own.
fn own_headers(request: &Request) -> Vec<(HeaderName, HeaderValue)> {
    let parse = |(name, value): &(String, String)| {
        Some((HeaderName::try_from(name.as_str()).ok()?, HeaderValue::from_str(value).ok()?))
    };
    request.headers.iter().filter_map(parse).collect()
}

/// Shows a response to the witness as well.
struct Witnessed<'a> {
    shown: Shown<'a>,
    witness: Witness<'a>,
}

impl Visit for Witnessed<'_> {
    fn head(&mut self, head: &Head) -> Progress {
        self.witness.head(self.shown.meter.last_read(), head);
        self.shown.head(head)
    }

    fn data(&mut self, bytes: &[u8]) -> Progress {
        self.witness.data(self.shown.meter.receipt(), bytes);
        self.shown.data(bytes)
    }
}

/// Who wants to know what happens to a request, if anybody does.
#[derive(Clone, Copy)]
struct Witness<'a> {
    observer: Option<&'a dyn Observe>,
    request: &'a Request,
    /// A server may repeat a key: no observer sees it.
    secrets: &'a Secrets,
}

impl Witness<'_> {
    fn note<'e>(&self, event: impl FnOnce() -> Event<'e>) {
        if let Some(observer) = self.observer {
            observer.note(self.request, &event());
        }
    }

    fn head(&self, at: Stamp, head: &Head) {
        self.note(|| {
            let hidden = |text: &String| self.secrets.hidden(text).into_owned();
            let location = head.location.as_ref().map(hidden);
            Event::Head { at, head: Cow::Owned(Head { location, ..head.clone() }) }
        });
    }

    fn data(&self, receipt: Receipt, bytes: &[u8]) {
        if let Some(observer) = self.observer {
            let bytes = &self.secrets.hidden_bytes(bytes);
            observer.note(self.request, &Event::Data { receipt, bytes });
        }
    }

    /// Notes that the request is sent once more, as `reply` has counted it.
    fn again(&self, failure: &Failure, reply: &Reply) {
        let (sent, rare) = (reply.sent, reply.rare());
        let (reconnects, retries) = (rare.reconnects, rare.retries);
        self.note(|| {
            let failure = Cow::Owned(self.hidden(failure));
            Event::Again { sent, reconnects, retries, failure }
        });
    }

    /// Notes that the request is over, before `reply` tells how.
    fn over(&self, at: Stamp, ended: &Ended, reply: &Reply) {
        let (sent, lag) = (reply.sent, reply.read_lag);
        self.note(|| {
            let ended = match ended {
                Ended::Broken(failure) => Ended::Broken(self.hidden(failure)),
                Ended::NoAnswer(failure) => Ended::NoAnswer(self.hidden(failure)),
                whole => whole.clone(),
            };
            Event::Over { at, ended: Cow::Owned(ended), sent, lag }
        });
    }

    fn hidden(&self, failure: &Failure) -> Failure {
        let detail = self.secrets.hidden(&failure.detail).into();
        Failure { kind: failure.kind, detail }
    }
}

/// Why there is no connection, with what is to be done about what this machine lacks.
fn no_connection(error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::AddrNotAvailable => " (no local port is left: net.ipv4.ip_local_port_range)",
        _ => "",
    };
    Failure::new(FailureKind::Connect, format!("connect: {error}{hint}"))
}

impl<C: Clock + Unpin, K: Connect> HttpBackend<C, K> {
    /// Sends the request, and again as often as may be.
    async fn attempt(&self, request: &Request, reply: &mut Reply) {
        let start = self.clock.now();
        let witness =
            Witness { observer: self.observer.as_deref(), request, secrets: &self.secrets };
        witness.note(|| Event::Began {
            at: start,
            target: reply.rare().target,
            keep_pieces: reply.keep_pieces,
        });
        let own = own_headers(request);
        let mut pooled = self.acquire().await;
        loop {
            let connection = match pooled.take() {
                Some(connection) => Ok(connection),
                // In a box: what it needs is large, and most requests do not connect.
                None => Box::pin(self.open(start, reply, witness)).await,
            };
            let mut connection = match connection {
                Ok(connection) => connection,
                Err(failure) => {
                    if self.retries(start, reply).await {
                        witness.again(&failure, reply);
                        continue;
                    }
                    witness.over(self.clock.now(), &Ended::NoAnswer(failure.clone()), reply);
                    return reply.fail(failure);
                }
            };
            let meter = Rc::clone(connection.meter());
            meter.mark(self.clock.now());
            let mut reading = Reading::new(self.protocol.decoder(request));
            let ended = {
                let exchange = self.exchange(&mut connection, &own, &mut reading, reply, witness);
                let watch = pin!(self.limits.watch_answer(&self.clock, start, &meter));
                unless(pin!(exchange), watch).await.unwrap_or_else(Ended::Broken)
            };
            reply.sent = meter.first_write();
            reply.read_lag = meter.lag();
            if let Ended::NoAnswer(failure) = &ended {
                if connection.is_proven() && reply.rare().reconnects == 0 {
                    reply.rare_mut().reconnects = 1;
                    witness.again(failure, reply);
                    continue;
                }
                if self.retries(start, reply).await {
                    witness.again(failure, reply);
                    continue;
                }
            }
            let at = meter.last_read();
            witness.over(at, &ended, reply);
            let is_reply = !reading.is_refused();
            reading.end(at, &ended, reply);
            match ended {
                Ended::Complete => self.recycle(connection, true).await,
                Ended::Early if is_reply => self.recycle(connection, false).await,
                Ended::Early | Ended::Broken(_) | Ended::NoAnswer(_) => {}
            }
            return;
        }
    }
}

impl<C: Clock + Unpin, K: Connect> Backend for HttpBackend<C, K> {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        self.attempt(request, reply).await;
        if let Some(failure) = &mut reply.failure
            && let Cow::Owned(hidden) = self.secrets.hidden(&failure.detail)
        {
            // A server may repeat the key that it does not like.
            failure.detail = hidden.into();
        }
    }

    async fn warm(&self, concurrency: usize) {
        if !self.limits.keep_alive {
            return;
        }
        let is_shared = self.connect.spoken() == Spoken::Http2;
        let missing = concurrency.saturating_sub(self.pool.borrow().len());
        let opening = async {
            if is_shared {
                // One by one: the first tells how many requests each has room for.
                while self.pool.borrow().room_on_links() < concurrency {
                    let Ok(connection) = self.open_one().await else { return };
                    if connection.link().is_none_or(|link| link.most() == 0) {
                        return;
                    }
                    self.pool.borrow_mut().put(connection);
                }
                return;
            }
            for batch in (0..missing).step_by(WARM_BATCH) {
                let batch = WARM_BATCH.min(missing - batch);
                let open = || async {
                    let mut connection = self.open_one().await.ok()?;
                    poll_fn(|cx| Poll::Ready(connection.is_usable(cx))).await;
                    Some(connection)
                };
                for connection in join_all((0..batch).map(|_| open())).await {
                    // Failures are left to the requests, which report them.
                    let Some(connection) = connection else { return };
                    self.pool.borrow_mut().put(connection);
                }
            }
            let opened = u32::try_from(missing).unwrap_or(u32::MAX);
            tokio::time::sleep(SETTLING.saturating_mul(opened)).await;
        };
        if tokio::time::timeout(WARM_LIMIT, opening).await.is_err() {
            // A server that does not accept in time is the requests' to report, too.
        }
    }
}
