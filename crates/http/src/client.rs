//! The HTTP engine: one per worker, for every protocol.

use crate::connect::Connect;
use crate::lean::Room;
use crate::meter::{Meter, Tap};
use crate::pool::Pool;
use crate::target::Target;
use crate::wire::{Call, Connection, Ended, Head, HttpReader, Visit};
use futures_util::future::{Either, join_all, select};
use http::{HeaderName, HeaderValue, Method, header};
use servebench_core::{
    Backend, Clock, Decode, End, Failure, FailureKind, Progress, Protocol, Reply, Request, Stamp,
    unless,
};
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

/// Most of an error body that is read so that its connection can be kept.
const ERROR_BODY_LIMIT: usize = 1 << 20;

/// How long replies may take, and whether connections outlive them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest silence of the server; comments and partial lines count as life. `None`: unlimited.
    pub idle: Option<Duration>,
    /// Longest time from dispatch to the end of the reply.
    pub total: Duration,
    /// Use connections again. Without, each request opens one inside its own time.
    pub keep_alive: bool,
    /// Who reads HTTP/1.1.
    pub reader: HttpReader,
}

impl Default for Limits {
    /// Any silence, six hours in all (what the Python tools allow), warm connections.
    fn default() -> Self {
        Self {
            idle: None,
            total: Duration::from_hours(6),
            keep_alive: true,
            reader: HttpReader::Auto,
        }
    }
}

/// Sends requests over kept-alive HTTP/1.1 connections. Belongs to one worker.
///
/// A request takes a warm connection if there is one, else it connects, and
/// [`Rare::connect`](servebench_core::Rare::connect) says how long that took. A reused connection
/// that turns out dead before one byte of an answer came is replaced and the request sent once more,
/// counted in [`Rare::reconnects`](servebench_core::Rare::reconnects); nothing else is ever repeated.
pub struct HttpBackend<C, K> {
    clock: C,
    connect: K,
    protocol: Arc<dyn Protocol>,
    call: Call,
    limits: Limits,
    pool: RefCell<Pool>,
    tap: Tap<C>,
    room: Room,
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
        let call = Call::new(Method::POST, target.uri(protocol.path()), headers);
        let (tap, room, pool) = (Tap::new(clock.clone()), Room::default(), RefCell::default());
        Self { clock, connect, protocol, call, limits, pool, tap, room }
    }

    async fn acquire(&self) -> Option<Connection> {
        let now = self.clock.now();
        poll_fn(|cx| Poll::Ready(self.pool.borrow_mut().take(now, cx))).await
    }

    async fn open_one(&self) -> io::Result<Connection> {
        let tap = self.tap.another();
        Connection::open(&self.connect, tap, self.limits.reader, &self.room).await
    }

    /// Returns the failure once the server was silent, or the request under way, for too long.
    async fn watch_since(&self, start: Stamp, alive: impl Fn() -> Stamp) -> Failure {
        let total = Stamp::from(start.offset() + self.limits.total);
        loop {
            let idle = self.limits.idle.map(|idle| Stamp::from(alive().offset() + idle));
            self.clock.sleep_until(idle.map_or(total, |idle| idle.min(total))).await;
            let now = self.clock.now();
            if now >= total {
                let detail = format!("timeout: no complete reply within {:?}", self.limits.total);
                return Failure::new(FailureKind::Timeout, detail);
            }
            if let Some(idle) = self.limits.idle
                && now.since(alive()) >= idle
            {
                let detail = format!("timeout: the server sent nothing for {idle:?}");
                return Failure::new(FailureKind::Timeout, detail);
            }
        }
    }

    async fn open(&self, start: Stamp, reply: &mut Reply) -> Option<Connection> {
        let began = self.clock.now();
        let opening = pin!(self.open_one());
        let watch = pin!(self.watch_since(start, || began));
        let result = match select(opening, watch).await {
            Either::Left((result, _)) => result
                .map_err(|error| Failure::new(FailureKind::Connect, format!("connect: {error}"))),
            Either::Right((failure, _)) => Err(failure),
        };
        let rare = reply.rare_mut();
        rare.connect = Some(rare.connect.unwrap_or_default() + self.clock.now().since(began));
        let connection = result.map_err(|failure| reply.fail(failure)).ok()?;
        if let Some(tls) = connection.tls {
            let rare = reply.rare_mut();
            rare.tls = Some(rare.tls.unwrap_or_default() + tls);
        }
        Some(connection)
    }

    /// Gives the connection back: at once if its body has ended, else when that has happened.
    async fn recycle(&self, mut connection: Connection, ended: bool) {
        if !self.limits.keep_alive {
            return;
        }
        connection.proven = true;
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

/// Notes a response in a reply as it comes.
struct Reading<'a> {
    meter: &'a Meter,
    decoder: &'a mut dyn Decode,
    reply: &'a mut Reply,
    /// A response that is not decoded, and why.
    refused: Option<Refused>,
}

/// A response that is no reply.
struct Refused {
    /// What is known without its body.
    words: String,
    kind: FailureKind,
    /// The words say it all.
    explained: bool,
    /// The body's beginning explains it otherwise.
    body: Vec<u8>,
    read: usize,
}

impl Visit for Reading<'_> {
    fn head(&mut self, head: &Head) -> Progress {
        self.reply.headers = Some(self.meter.last_read());
        self.reply.status = Some(head.status);
        self.refused = Refused::of(head);
        if let (None, Some(metadata)) = (&self.refused, &head.metadata) {
            self.decoder.metadata(metadata, self.reply);
        }
        let is_coded = self.refused.as_ref().is_some_and(|it| it.kind == FailureKind::Protocol);
        if is_coded { Progress::Done } else { Progress::More }
    }

    fn data(&mut self, bytes: &[u8]) -> Progress {
        if let Some(refused) = &mut self.refused {
            return refused.take(bytes);
        }
        let at = self.meter.last_read();
        let Some(after) = self.meter.after() else {
            return self.decoder.feed(at, bytes, self.reply);
        };
        self.reply.chunks.read_after(after);
        let progress = self.decoder.feed(at, bytes, self.reply);
        if !self.meter.is_told() {
            // Then the newest byte has no more than bounds, too.
            self.reply.chunks.followed(at);
        }
        progress
    }
}

impl Refused {
    fn of(head: &Head) -> Option<Self> {
        let refuse = |kind, explained, words| {
            Some(Self { words, kind, explained, body: Vec::new(), read: 0 })
        };
        let status = http::StatusCode::from_u16(head.status);
        match (status, &head.location, &head.encoding) {
            (Ok(http::StatusCode::OK), _, None) => None,
            (Ok(http::StatusCode::OK), _, Some(encoding)) if encoding == "identity" => None,
            (Ok(http::StatusCode::OK), _, Some(encoding)) => {
                let words =
                    format!("the reply is compressed ({encoding:?}), which was not asked for");
                refuse(FailureKind::Protocol, true, words)
            }
            (Ok(status), Some(to), _) if status.is_redirection() => {
                let words =
                    format!("{status}: redirect to {to} refused; give that address as --base-url");
                refuse(FailureKind::Status, true, words)
            }
            (Ok(status), ..) => refuse(FailureKind::Status, false, status.to_string()),
            (Err(_), ..) => refuse(FailureKind::Status, false, format!("status {}", head.status)),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Progress {
        self.read += bytes.len();
        let room = (2 * Failure::DETAIL_LIMIT).saturating_sub(self.body.len());
        self.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.read < ERROR_BODY_LIMIT { Progress::More } else { Progress::Done }
    }

    fn failure(self) -> Failure {
        let text = String::from_utf8_lossy(&self.body);
        let detail = if self.explained || text.trim().is_empty() {
            self.words
        } else {
            format!("{}: {}", self.words, text.trim())
        };
        Failure::new(self.kind, detail)
    }
}

impl<C: Clock + Unpin, K: Connect> Backend for HttpBackend<C, K> {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        let start = self.clock.now();
        let own = own_headers(request);
        let mut pooled = self.acquire().await;
        loop {
            let connection = match pooled.take() {
                Some(connection) => Some(connection),
                // In a box: what it needs is large, and most requests do not connect.
                None => Box::pin(self.open(start, reply)).await,
            };
            let Some(mut connection) = connection else { return };
            let meter = Rc::clone(connection.meter());
            meter.mark(self.clock.now());
            let mut decoder = self.protocol.decoder(request);
            let mut reading =
                Reading { meter: &meter, decoder: decoder.as_mut(), reply, refused: None };
            let ended = {
                let exchange =
                    pin!(connection.exchange(&self.call, &own, &request.body, &mut reading));
                let watch = pin!(self.watch_since(start, || meter.last_read()));
                unless(exchange, watch).await.unwrap_or_else(Ended::Broken)
            };
            let refused = reading.refused.take();
            reply.sent = meter.first_write();
            reply.read_lag = meter.lag();
            let now = meter.last_read();
            match (ended, refused) {
                (Ended::NoAnswer(_), _) if connection.proven && reply.rare().reconnects == 0 => {
                    reply.rare_mut().reconnects = 1;
                    continue;
                }
                (Ended::Complete, Some(refused)) => {
                    reply.fail(refused.failure());
                    self.recycle(connection, true).await;
                }
                (_, Some(refused)) => reply.fail(refused.failure()),
                (ended @ (Ended::Complete | Ended::Early), None) => {
                    decoder.end(now, End::Complete, reply);
                    self.recycle(connection, matches!(ended, Ended::Complete)).await;
                }
                (Ended::Broken(failure), None) if reply.status == Some(200) => {
                    decoder.end(now, End::Broken(failure), reply);
                }
                (Ended::Broken(failure) | Ended::NoAnswer(failure), None) => reply.fail(failure),
            }
            return;
        }
    }

    async fn warm(&self, concurrency: usize) {
        if !self.limits.keep_alive {
            return;
        }
        let missing = concurrency.saturating_sub(self.pool.borrow().len());
        let opening = async {
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
