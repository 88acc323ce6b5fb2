//! Requests over HTTP/2: one connection, exact stamps, the same rules. In memory and in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "this test's clock is tokio's own")]

mod common;
mod virtual_time;

use bytes::Bytes;
use common::{Lines, TestClock};
use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Request as HttpRequest, Response};
use proptest::prelude::*;
use servebench_core::{Backend, FailureKind, Reply, Request, Stamp};
use servebench_http::{Caller, FnConnect, HttpBackend, Limits, Method, Spoken, Stream, Target};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{JoinSet, spawn_local};
use tokio::time::{Instant, sleep};
use virtual_time::{in_virtual_time, ms};

type Ask = HttpRequest<RecvStream>;
type Answer = SendResponse<Bytes>;

/// Serves one connection: each request by `serve` with the number it has on it.
async fn serve<F: Future<Output = ()> + 'static>(
    stream: DuplexStream,
    most: Option<u32>,
    serve: Rc<dyn Fn(usize, Ask, Answer) -> F>,
) {
    let mut builder = server::Builder::new();
    if let Some(most) = most {
        builder.max_concurrent_streams(most);
    }
    let Ok(mut connection) = builder.handshake(stream).await else { return };
    let mut count = 0;
    while let Some(Ok((request, answer))) = connection.accept().await {
        spawn_local(serve(count, request, answer));
        count += 1;
    }
}

/// A server's end, and how many connections were opened to it.
fn connect<F: Future<Output = ()> + 'static>(
    most: Option<u32>,
    by: impl Fn(usize, Ask, Answer) -> F + 'static,
) -> (FnConnect, Rc<Cell<usize>>) {
    let opened = Rc::new(Cell::new(0));
    let (count, by) = (Rc::clone(&opened), Rc::new(by) as Rc<dyn Fn(usize, Ask, Answer) -> F>);
    let connect = FnConnect::new(move || {
        count.set(count.get() + 1);
        let (client, server) = tokio::io::duplex(64 * 1024);
        spawn_local(serve(server, most, Rc::clone(&by)));
        async move { Ok(Box::new(client) as Box<dyn Stream>) }
    });
    (connect.speaking(Spoken::Http2), opened)
}

fn backend(connect: FnConnect, limits: Limits) -> Rc<HttpBackend<TestClock, FnConnect>> {
    let target = Target::new("http://peer:81/base".parse().unwrap());
    let target = target.with_header("x-key", "secret").unwrap();
    let clock = TestClock(Instant::now());
    Rc::new(HttpBackend::new(clock, connect, &target, Arc::new(Lines), limits))
}

async fn send(backend: &HttpBackend<TestClock, FnConnect>) -> Reply {
    let asks = Request { body: "{}".into(), ..Request::default() };
    let mut reply = Reply::default();
    backend.send(&asks, &mut reply).await;
    reply
}

/// Sends so many requests at once.
async fn send_all(backend: &Rc<HttpBackend<TestClock, FnConnect>>, count: usize) -> Vec<Reply> {
    let mut tasks = JoinSet::new();
    for at in 0..count {
        let backend = Rc::clone(backend);
        tasks.spawn_local(async move { (at, send(&backend).await) });
    }
    let mut replies = tasks.join_all().await;
    replies.sort_by_key(|(at, _)| *at);
    replies.into_iter().map(|(_, reply)| reply).collect()
}

async fn body(request: Ask) -> Vec<u8> {
    let mut body = request.into_body();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.unwrap();
        body.flow_control().release_capacity(data.len()).unwrap();
        bytes.extend(data);
    }
    bytes
}

fn head(mut answer: Answer) -> SendStream<Bytes> {
    answer.send_response(Response::new(()), false).unwrap()
}

fn line(stream: &mut SendStream<Bytes>, text: &'static str, end: bool) {
    // Fails when the client has left.
    drop(stream.send_data(Bytes::from_static(text.as_bytes()), end));
}

async fn usual(_nth: usize, request: Ask, answer: Answer) {
    assert_eq!(body(request).await, b"{}");
    line(&mut head(answer), "a\nDONE\n", true);
}

#[test]
fn a_request_says_what_it_says_over_http1_and_stamps_are_those_of_the_reads() {
    in_virtual_time(async {
        let (connect, _) = connect(None, |_, request: Ask, answer| async move {
            assert_eq!(request.method(), "POST");
            assert_eq!(request.uri(), "http://peer:81/base/lines");
            assert_eq!(request.headers()["x-key"], "secret");
            assert_eq!(request.headers()["content-type"], "application/json");
            assert!(!request.headers().contains_key("host"));
            assert_eq!(body(request).await, b"{}");
            sleep(ms(20)).await;
            let mut stream = head(answer);
            for (pause, text) in [(230, "a\n"), (10, "b\n"), (10, "c\n"), (30, "DONE\n")] {
                sleep(ms(pause)).await;
                line(&mut stream, text, false);
            }
            line(&mut stream, "", true);
        });
        let reply = send(&backend(connect, Limits::default())).await;
        assert_eq!((&reply.failure, reply.status), (&None, Some(200)));
        assert_eq!((reply.sent, reply.headers), (Some(Stamp(0)), Some(Stamp::from_millis(20))));
        let stamps: Vec<_> = reply.chunks.iter().map(|chunk| chunk.at).collect();
        assert_eq!(stamps, [250, 260, 270].map(Stamp::from_millis));
        assert_eq!(reply.last_line, Some(Stamp::from_millis(300)));
        assert_eq!(reply.rare().connect, Some(ms(0)));
    });
}

#[test]
fn many_requests_share_a_connection_and_each_has_its_own_times() {
    in_virtual_time(async {
        let (connect, opened) = connect(None, |nth, request, answer| async move {
            body(request).await;
            let mut stream = head(answer);
            // All lines of a millisecond come in one read, for several streams.
            for line_at in 0..20u64 {
                sleep(ms(1 + (nth as u64 + line_at) % 3)).await;
                line(&mut stream, "t\n", false);
            }
            line(&mut stream, "DONE\n", true);
        });
        let backend = backend(connect, Limits::default());
        backend.warm(50).await;
        let replies = send_all(&backend, 50).await;
        assert_eq!(opened.get(), 1);
        for (nth, reply) in replies.iter().enumerate() {
            assert_eq!((&reply.failure, reply.rare().connect), (&None, None));
            let mut at = 0;
            let want: Vec<_> = (0..20)
                .map(|line| {
                    at += 1 + (nth as u64 + line) % 3;
                    Stamp::from_millis(at)
                })
                .collect();
            let stamps: Vec<_> = reply.chunks.iter().map(|chunk| chunk.at).collect();
            assert_eq!(stamps, want, "{nth}");
        }
    });
}

#[test]
fn where_a_connection_is_full_another_is_opened_and_nothing_waits() {
    in_virtual_time(async {
        let most = Rc::new(Cell::new((0, 0)));
        let under_way = Rc::clone(&most);
        let (connect, opened) = connect(Some(4), move |_, request, answer| {
            let under_way = Rc::clone(&under_way);
            async move {
                let (now, peak) = under_way.get();
                under_way.set((now + 1, peak.max(now + 1)));
                body(request).await;
                let mut stream = head(answer);
                sleep(ms(100)).await;
                line(&mut stream, "a\nDONE\n", true);
                under_way.set((under_way.get().0 - 1, under_way.get().1));
            }
        });
        let backend = backend(connect, Limits::default());
        for _ in 0..3 {
            let start = Instant::now();
            let replies = send_all(&backend, 30).await;
            assert!(replies.iter().all(|reply| reply.failure.is_none()), "{replies:?}");
            assert_eq!(start.elapsed(), ms(100));
        }
        assert_eq!((most.get().1, opened.get()), (30, 8));
    });
}

#[test]
fn a_body_larger_than_the_window_goes_through() {
    in_virtual_time(async {
        let size = 3_000_000;
        let (connect, _) = connect(None, move |_, request, answer| async move {
            assert_eq!(body(request).await.len(), size);
            line(&mut head(answer), "a\nDONE\n", true);
        });
        let backend = backend(connect, Limits::default());
        let mut reply = Reply::default();
        let asks = Request { body: vec![b' '; size].into(), ..Request::default() };
        backend.send(&asks, &mut reply).await;
        assert_eq!((reply.failure, reply.text.as_str()), (None, "a"));
    });
}

#[test]
fn endings_mean_what_they_mean_over_http1() {
    in_virtual_time(async {
        let (connect, opened) = connect(None, |nth, request, mut answer: Answer| async move {
            body(request).await;
            match nth {
                0 => {
                    let mut stream = head(answer);
                    line(&mut stream, "a\n", false);
                    sleep(ms(1)).await;
                    stream.send_reset(Reason::INTERNAL_ERROR);
                }
                1 => {
                    let busy = Response::builder().status(503).body(()).unwrap();
                    line(&mut answer.send_response(busy, false).unwrap(), "busy", true);
                }
                _ => {
                    let mut stream = head(answer);
                    line(&mut stream, "a\n", false);
                    std::future::pending::<()>().await;
                }
            }
        });
        let backend = backend(connect, Limits { idle: Some(ms(500)), ..Limits::default() });
        let mut kinds = Vec::new();
        for _ in 0..3 {
            let reply = send(&backend).await;
            let failure = reply.failure.unwrap();
            kinds.push((failure.kind, reply.text, failure.detail));
        }
        let [reset, status, silent] = &kinds[..] else { panic!("three") };
        assert_eq!((reset.0, reset.1.as_str()), (FailureKind::Reset, "a"), "{}", reset.2);
        assert_eq!((status.0, &*status.2), (FailureKind::Status, "503 Service Unavailable: busy"));
        assert_eq!((silent.0, silent.1.as_str()), (FailureKind::Timeout, "a"));
        assert!(silent.2.contains("--idle-timeout"), "{}", silent.2);
        assert_eq!(opened.get(), 1, "the connection outlives its streams");
    });
}

#[test]
fn a_connection_that_is_gone_is_replaced_once_and_only_if_it_was_good() {
    in_virtual_time(async {
        // Each connection answers one request, then closes on the next one's first byte.
        let serve_one = |mut stream: DuplexStream| async move {
            let mut connection = server::handshake(&mut stream).await.unwrap();
            if let Some(Ok((request, answer))) = connection.accept().await {
                let answered = usual(0, request, answer);
                let next = async { connection.accept().await.is_some() };
                tokio::join!(answered, next);
            }
        };
        let opened = Rc::new(Cell::new(0));
        let count = Rc::clone(&opened);
        let connect = FnConnect::new(move || {
            count.set(count.get() + 1);
            let (client, server) = tokio::io::duplex(64 * 1024);
            spawn_local(serve_one(server));
            async move { Ok(Box::new(client) as Box<dyn Stream>) }
        });
        let backend = backend(connect.speaking(Spoken::Http2), Limits::default());
        assert_eq!(send(&backend).await.rare().reconnects, 0);
        let reply = send(&backend).await;
        assert_eq!((reply.failure.as_ref(), reply.rare().reconnects), (None, 1));
        assert_eq!(opened.get(), 2);
    });
}

#[test]
fn a_server_that_speaks_http1_is_told_from_one_that_does_not_answer() {
    in_virtual_time(async {
        let connect = |answer: &'static str| {
            let connect = FnConnect::new(move || {
                let (client, mut server) = tokio::io::duplex(64 * 1024);
                spawn_local(async move {
                    server.read_u8().await.unwrap();
                    server.write_all(answer.as_bytes()).await.unwrap();
                    if answer.is_empty() {
                        std::future::pending::<()>().await;
                    }
                });
                async move { Ok(Box::new(client) as Box<dyn Stream>) }
            });
            connect.speaking(Spoken::Http2)
        };
        let old = connect("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        let failure = send(&backend(old.clone(), Limits::default())).await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Connect);
        assert!(failure.detail.contains("does not speak HTTP/2"), "{failure}");
        let caller = Caller::new(old, Target::new("http://peer".parse().unwrap()));
        let error = caller.call(Method::GET, "/", None, ms(1000)).await.unwrap_err();
        assert!(error.is_permanent(), "{error:?}");

        let failure = send(&backend(connect(""), Limits::default())).await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Timeout);
        assert!(failure.detail.contains("--connect-timeout"), "{failure}");
    });
}

#[test]
fn cold_connections_and_single_calls_have_one_each() {
    in_virtual_time(async {
        let (connect, opened) = connect(None, usual);
        let cold = backend(connect.clone(), Limits { keep_alive: false, ..Limits::default() });
        cold.warm(3).await;
        assert_eq!(opened.get(), 0);
        let replies = send_all(&cold, 3).await;
        assert!(replies.iter().all(|reply| reply.failure.is_none()), "{replies:?}");
        assert_eq!(opened.get(), 3);
        let caller = Caller::new(connect, Target::new("http://peer".parse().unwrap()));
        let answer = caller.call(Method::POST, "/x", Some("{}".into()), ms(1000)).await.unwrap();
        assert_eq!((answer.status, &answer.body[..]), (200, &b"a\nDONE\n"[..]));
        assert_eq!(opened.get(), 4);
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Requests that are given up at any time hold nobody back, and change nobody's stamps.
    #[test]
    fn who_leaves_holds_nobody_back(
        patience in prop::collection::vec(prop::option::of(0..60u64), 1..20),
        pauses in prop::collection::vec(0..4u64, 1..10),
    ) {
        in_virtual_time(async {
            let script = Rc::new(pauses.clone());
            let (connect, _) = connect(Some(7), move |_, request, answer| {
                let script = Rc::clone(&script);
                async move {
                    body(request).await;
                    let mut stream = head(answer);
                    for pause in script.iter() {
                        sleep(ms(*pause)).await;
                        line(&mut stream, "t\n", false);
                    }
                    line(&mut stream, "DONE\n", true);
                }
            });
            let backend = backend(connect, Limits::default());
            let mut tasks = JoinSet::new();
            for patience in &patience {
                let (backend, limit) = (Rc::clone(&backend), ms(patience.unwrap_or(1000)));
                let stays = patience.is_none();
                tasks.spawn_local(async move {
                    (stays, tokio::time::timeout(limit, send(&backend)).await.ok())
                });
            }
            let mut want = Vec::new();
            for pause in &pauses {
                want.push(Stamp::from_millis(want.last().map_or(0, |at: &Stamp| at.0 / 1_000_000) + pause));
            }
            for (stays, reply) in tasks.join_all().await {
                let Some(reply) = reply else {
                    assert!(!stays, "a request was never answered");
                    continue;
                };
                assert_eq!(reply.failure, None);
                let stamps: Vec<_> = reply.chunks.iter().map(|chunk| chunk.at).collect();
                assert_eq!(stamps, want);
            }
        });
    }
}
