//! The HTTP engine: one per worker, for every protocol.

use crate::connect::Connect;
use crate::connection::Connection;
use crate::pool::Pool;
use crate::target::Target;
use bytes::Bytes;
use futures_util::future::{Either, join_all, select};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use servebench_core::{
    Backend, Clock, Decode, End, Failure, FailureKind, Progress, Protocol, Reply, Request, Stamp,
};
use std::cell::RefCell;
use std::fmt::Debug;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// How long a finished request waits for the tail of its body (the last chunk usually comes with or
/// right behind `[DONE]`), so that its connection can serve the next one.
const TAIL_GRACE: Duration = Duration::from_millis(2);

/// Connections that are opened at the same time before a run, and how long that may take in all.
const WARM_BATCH: usize = 64;
const WARM_LIMIT: Duration = Duration::from_secs(30);

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
}

impl Default for Limits {
    /// Any silence, six hours in all (what the Python tools allow), warm connections.
    fn default() -> Self {
        Self { idle: None, total: Duration::from_hours(6), keep_alive: true }
    }
}

/// Sends requests over kept-alive HTTP/1.1 connections. Belongs to one worker.
///
/// A request takes a warm connection if there is one, else it connects, and
/// [`Reply::connect`] says how long that took. A reused connection that turns out dead before one
/// byte of an answer came is replaced and the request sent once more, counted in
/// [`Reply::reconnects`]; nothing else is ever repeated.
pub struct HttpBackend<C, K> {
    clock: C,
    connect: K,
    protocol: Arc<dyn Protocol>,
    uri: Uri,
    headers: HeaderMap,
    limits: Limits,
    pool: RefCell<Pool>,
}

impl<C: Debug, K: Debug> Debug for HttpBackend<C, K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Headers stay out: they hold secrets.
        f.debug_struct("HttpBackend")
            .field("connect", &self.connect)
            .field("protocol", &self.protocol)
            .field("uri", &self.uri)
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
        let uri = target.uri(protocol.path());
        let mut headers = target.headers_for_json();
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        Self { clock, connect, protocol, uri, headers, limits, pool: RefCell::default() }
    }

    async fn acquire(&self) -> Option<Connection> {
        let now = self.clock.now();
        poll_fn(|cx| Poll::Ready(self.pool.borrow_mut().take(now, cx))).await
    }

    fn http_request(&self, request: &Request) -> http::Request<Full<Bytes>> {
        let mut out = http::Request::new(Full::new(request.body.clone()));
        *out.method_mut() = Method::POST;
        *out.uri_mut() = self.uri.clone();
        *out.headers_mut() = self.headers.clone();
        for (name, value) in &request.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name.as_str()), HeaderValue::from_str(value))
            {
                out.headers_mut().insert(name, value);
            }
        }
        out
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
        let opening = pin!(Connection::open(&self.connect, &self.clock));
        let watch = pin!(self.watch_since(start, || began));
        let result = match select(opening, watch).await {
            Either::Left((result, _)) => result
                .map_err(|error| Failure::new(FailureKind::Connect, format!("connect: {error}"))),
            Either::Right((failure, _)) => Err(failure),
        };
        reply.connect = Some(reply.connect.unwrap_or_default() + self.clock.now().since(began));
        result.map_err(|failure| reply.fail(failure)).ok()
    }

    /// Sends on `connection` and reads the reply.
    async fn exchange(
        &self,
        connection: &mut Connection,
        request: &Request,
        decoder: &mut dyn Decode,
        reply: &mut Reply,
    ) -> Outcome {
        let head = connection.send(self.http_request(request)).await;
        reply.sent = connection.meter.first_write();
        let response = match head {
            Ok(response) => response,
            Err(error) if !connection.meter.has_read() => {
                return Outcome::NoAnswer(connection.failure(&error));
            }
            Err(error) => return Outcome::Broken(connection.failure(&error)),
        };
        reply.headers = Some(connection.meter.last_read());
        reply.status = Some(response.status().as_u16());
        if response.status() != http::StatusCode::OK {
            return refused(connection, response, reply).await;
        }
        if let Some(encoding) = response.headers().get(header::CONTENT_ENCODING)
            && encoding != "identity"
        {
            let detail = format!("the reply is compressed ({encoding:?}), which was not asked for");
            return Outcome::Broken(Failure::new(FailureKind::Protocol, detail));
        }
        let mut body = response.into_body();
        loop {
            match poll_fn(|cx| connection.poll_frame(cx, &mut body)).await {
                Some(Ok(frame)) => {
                    if let Some(data) = frame.data_ref()
                        && decoder.feed(connection.meter.last_read(), data, reply) == Progress::Done
                    {
                        return Outcome::Complete(Some(body));
                    }
                }
                Some(Err(error)) => return Outcome::Broken(connection.failure(&error)),
                None => return Outcome::Complete(None),
            }
        }
    }

    /// Gives the connection back, at once if its body has ended, else when that has happened.
    async fn recycle(&self, mut connection: Connection, body: Option<Incoming>) {
        if !self.limits.keep_alive {
            return;
        }
        let Some(mut body) = body else {
            return self.pool.borrow_mut().put(connection);
        };
        let until = Stamp::from(self.clock.now().offset() + TAIL_GRACE);
        let tail = pin!(poll_fn(|cx| connection.poll_drain(cx, &mut body)));
        let drained = match select(tail, pin!(self.clock.sleep_until(until))).await {
            Either::Left((proper, _)) => Some(proper),
            Either::Right(_) => None,
        };
        match drained {
            Some(true) => self.pool.borrow_mut().put(connection),
            Some(false) => {}
            None => self.pool.borrow_mut().linger(connection, body, until),
        }
    }
}

/// How one attempt went.
enum Outcome {
    /// The reply is complete; its body may still have a tail to read.
    Complete(Option<Incoming>),
    /// A status other than 200 was noted in the reply; true if the connection can be kept.
    Refused(bool),
    /// The reply broke off.
    Broken(Failure),
    /// Not one byte of an answer came.
    NoAnswer(Failure),
}

/// Notes a status other than 200 with the body that explains it.
async fn refused(
    connection: &mut Connection,
    response: Response<Incoming>,
    reply: &mut Reply,
) -> Outcome {
    let status = response.status();
    let location = response
        .headers()
        .get(header::LOCATION)
        .map(|to| String::from_utf8_lossy(to.as_bytes()).into_owned());
    let mut body = response.into_body();
    let (mut text, mut read, mut whole) = (Vec::new(), 0, false);
    while read < ERROR_BODY_LIMIT {
        match poll_fn(|cx| connection.poll_frame(cx, &mut body)).await {
            Some(Ok(frame)) => {
                let data = frame.data_ref().map(|data| &data[..]).unwrap_or_default();
                read += data.len();
                let room = (2 * Failure::DETAIL_LIMIT).saturating_sub(text.len());
                text.extend_from_slice(&data[..data.len().min(room)]);
            }
            Some(Err(_)) => break,
            None => {
                whole = true;
                break;
            }
        }
    }
    let text = String::from_utf8_lossy(&text);
    let detail = match location {
        Some(to) if status.is_redirection() => {
            format!("{status}: redirect to {to} refused; give that address as --base-url")
        }
        _ if text.trim().is_empty() => status.to_string(),
        _ => format!("{status}: {}", text.trim()),
    };
    reply.fail(Failure::new(FailureKind::Status, detail));
    Outcome::Refused(whole)
}

impl<C: Clock + Unpin, K: Connect> Backend for HttpBackend<C, K> {
    async fn send(&self, request: &Request, reply: &mut Reply) {
        let start = self.clock.now();
        let mut pooled = self.acquire().await;
        loop {
            let connection = match pooled.take() {
                Some(connection) => Some(connection),
                None => self.open(start, reply).await,
            };
            let Some(mut connection) = connection else { return };
            connection.meter.mark(self.clock.now());
            let meter = std::rc::Rc::clone(&connection.meter);
            let mut decoder = self.protocol.decoder(request);
            let outcome = {
                let exchange =
                    pin!(self.exchange(&mut connection, request, decoder.as_mut(), reply));
                let watch = pin!(self.watch_since(start, || meter.last_read()));
                match select(exchange, watch).await {
                    Either::Left((outcome, _)) => outcome,
                    Either::Right((failure, _)) => Outcome::Broken(failure),
                }
            };
            let now = meter.last_read();
            match outcome {
                Outcome::NoAnswer(_) if connection.proven && reply.reconnects == 0 => {
                    reply.reconnects = 1;
                    continue;
                }
                Outcome::Complete(tail) => {
                    connection.proven = true;
                    decoder.end(now, End::Complete, reply);
                    self.recycle(connection, tail).await;
                }
                Outcome::Refused(whole) => {
                    if whole {
                        connection.proven = true;
                        self.recycle(connection, None).await;
                    }
                }
                Outcome::Broken(failure) if reply.status == Some(200) => {
                    decoder.end(now, End::Broken(failure), reply);
                }
                Outcome::Broken(failure) | Outcome::NoAnswer(failure) => reply.fail(failure),
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
                    let mut connection = Connection::open(&self.connect, &self.clock).await.ok()?;
                    poll_fn(|cx| Poll::Ready(connection.is_usable(cx))).await;
                    Some(connection)
                };
                for connection in join_all((0..batch).map(|_| open())).await {
                    // Failures are left to the requests, which report them.
                    let Some(connection) = connection else { return };
                    self.pool.borrow_mut().put(connection);
                }
            }
        };
        if tokio::time::timeout(WARM_LIMIT, opening).await.is_err() {
            // A server that does not accept in time is the requests' to report, too.
        }
    }
}
