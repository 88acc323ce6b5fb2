//! Time limits, retries, codings: over in-memory connections and in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "this test's clock is tokio's own")]

mod common;
mod virtual_time;

use common::{Lines, TestClock};
use flate2::Compression;
use flate2::write::GzEncoder;
use servebench_core::{Backend, FailureKind, Reply, Request, Stamp};
use servebench_http::{Caller, FnConnect, HttpBackend, HttpReader, Limits, Method, Stream, Target};
use std::cell::Cell;
use std::io::Write;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, sleep};
use virtual_time::{in_virtual_time, ms};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";

/// Runs `test` once for each reader of HTTP/1.1, in virtual time.
fn with_each_reader(test: impl AsyncFn(Limits)) {
    for reader in [HttpReader::Lean, HttpReader::Hyper] {
        in_virtual_time(test(Limits { reader, ..Limits::default() }));
    }
}

/// Reads a request with the body `{}`.
async fn request(peer: &mut DuplexStream) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"\r\n\r\n{}") {
        seen.push(peer.read_u8().await.unwrap());
    }
}

/// Sends one request over connections of which the n-th is what `open` gives: the reply, how long it
/// took, and how many connections were asked for.
async fn send<F>(limits: Limits, open: impl Fn(usize) -> F + 'static) -> (Reply, Duration, usize)
where
    F: Future<Output = std::io::Result<Box<dyn Stream>>> + 'static,
{
    let asked = Rc::new(Cell::new(0));
    let count = Rc::clone(&asked);
    let connect = FnConnect::new(move || open(count.replace(count.get() + 1)));
    let target = Target::new("http://peer".parse().unwrap());
    let clock = TestClock(Instant::now());
    let backend = HttpBackend::new(clock, connect, &target, Arc::new(Lines), limits);
    let start = Instant::now();
    let mut reply = Reply::default();
    let asks = Request { body: "{}".into(), ..Request::default() };
    backend.send(&asks, &mut reply).await;
    (reply, start.elapsed(), asked.get())
}

/// A connection whose other end is served by `serve`.
#[expect(clippy::unnecessary_wraps, reason = "what a connector gives")]
fn served<F: Future<Output = ()> + 'static>(
    serve: impl FnOnce(DuplexStream) -> F,
) -> std::io::Result<Box<dyn Stream>> {
    let (client, server) = tokio::io::duplex(64 * 1024);
    tokio::task::spawn_local(serve(server));
    Ok(Box::new(client))
}

/// Panics unless the reply timed out, and its words name this flag.
#[track_caller]
fn timed_out(reply: &Reply, flag: &str) {
    let failure = reply.failure.as_ref().unwrap();
    assert_eq!(failure.kind, FailureKind::Timeout, "{failure}");
    assert!(failure.detail.starts_with("timeout: "), "{failure}");
    assert!(failure.detail.ends_with(&format!("({flag})")), "{failure}");
}

async fn silent(mut peer: DuplexStream) {
    request(&mut peer).await;
    std::future::pending::<()>().await;
}

#[test]
fn connecting_has_a_limit_of_its_own() {
    with_each_reader(async |limits| {
        let limits = Limits { connect: Some(ms(700)), ..limits };
        let (reply, took, asked) = send(limits, |_| std::future::pending()).await;
        timed_out(&reply, "--connect-timeout");
        assert_eq!((took, asked), (ms(700), 1));
        assert_eq!(reply.rare().connect, Some(ms(700)));

        // The limit of the whole request counts here too, if it is the shorter one.
        let limits = Limits { total: Some(ms(300)), ..limits };
        let (reply, took, _) = send(limits, |_| std::future::pending()).await;
        timed_out(&reply, "--request-timeout");
        assert_eq!(took, ms(300));

        // What it took is not taken from the other limits.
        let limits = Limits { first_byte: Some(ms(500)), total: None, ..limits };
        let slow = |_| async {
            sleep(ms(600)).await;
            served(silent)
        };
        let (reply, took, _) = send(limits, slow).await;
        timed_out(&reply, "--first-byte-timeout");
        assert_eq!((took, reply.sent), (ms(1100), Some(Stamp::from_millis(600))));
    });
}

#[test]
fn until_the_first_byte_its_limit_stands_in_for_that_of_silence() {
    with_each_reader(async |limits| {
        let limits = Limits { first_byte: Some(ms(5000)), idle: Some(ms(1000)), ..limits };
        // Silent for longer than `idle` before the first byte, which is allowed; then once more, which is
        // not. Where the first byte comes between two looks, the limit is exact all the same.
        for first in [100, 1000, 2345, 4999] {
            let (reply, took, _) = send(limits, move |_| async move {
                served(move |mut peer| async move {
                    request(&mut peer).await;
                    sleep(ms(first)).await;
                    peer.write_all(HEAD.as_bytes()).await.unwrap();
                    std::future::pending::<()>().await;
                })
            })
            .await;
            timed_out(&reply, "--idle-timeout");
            assert_eq!((took, reply.status), (ms(first + 1000), Some(200)));
        }
        let (reply, took, _) = send(limits, |_| async { served(silent) }).await;
        timed_out(&reply, "--first-byte-timeout");
        assert_eq!(took, ms(5000));

        // Alone it is no limit of what comes behind the first byte.
        let limits = Limits { idle: None, ..limits };
        let (reply, took, _) = send(limits, |_| async {
            served(|mut peer| async move {
                request(&mut peer).await;
                peer.write_all(HEAD.as_bytes()).await.unwrap();
                sleep(ms(60_000)).await;
                peer.write_all(b"a\nDONE\n").await.unwrap();
            })
        })
        .await;
        assert_eq!((reply.failure, took), (None, ms(60_000)));
    });
}

#[test]
fn a_slow_drip_is_life_and_only_the_whole_request_has_an_end() {
    with_each_reader(async |limits| {
        let drip = |_| async {
            served(|mut peer| async move {
                request(&mut peer).await;
                // Byte by byte, and never a whole line.
                for byte in HEAD.bytes().chain(std::iter::repeat(b'x')) {
                    sleep(ms(900)).await;
                    if peer.write_all(&[byte]).await.is_err() {
                        return;
                    }
                }
            })
        };
        let limits = Limits { idle: Some(ms(1000)), total: Some(ms(3_600_000)), ..limits };
        let (reply, took, _) = send(limits, drip).await;
        timed_out(&reply, "--request-timeout");
        assert_eq!(took, ms(3_600_000));
    });
}

#[test]
fn without_limits_nothing_ends_a_wait() {
    with_each_reader(async |limits| {
        let limits = Limits { connect: None, first_byte: None, idle: None, total: None, ..limits };
        let week = Duration::from_hours(7 * 24);
        let waiting = send(limits, |_| async { served(silent) });
        assert!(tokio::time::timeout(week, waiting).await.is_err());
        let waiting = send(limits, |_| std::future::pending());
        assert!(tokio::time::timeout(week, waiting).await.is_err());
    });
}

#[test]
fn retries_wait_longer_each_time_and_are_counted() {
    with_each_reader(async |limits| {
        let refused = |_| async { Err(std::io::ErrorKind::ConnectionRefused.into()) };
        let (reply, took, asked) = send(limits, refused).await;
        assert_eq!((took, asked, reply.rare().retries), (ms(0), 1, 0));
        assert_eq!(reply.failure.unwrap().kind, FailureKind::Connect);

        let limits = Limits { retries: 8, ..limits };
        let (reply, took, asked) = send(limits, refused).await;
        assert_eq!((asked, reply.rare().retries), (9, 8));
        assert_eq!(took, ms(100 + 200 + 400 + 800 + 1600 + 3200 + 5000 + 5000));
        assert_eq!(reply.failure.unwrap().kind, FailureKind::Connect);

        // Not once more when the time for all of it would be over.
        let limits = Limits { total: Some(ms(1000)), ..limits };
        let (reply, took, asked) = send(limits, refused).await;
        assert_eq!((took, asked, reply.rare().retries), (ms(700), 4, 3));
    });
}

#[test]
fn a_try_without_a_byte_of_an_answer_is_repeated_and_its_time_kept() {
    with_each_reader(async |limits| {
        let limits = Limits { retries: 3, connect: Some(ms(1000)), ..limits };
        let (reply, took, asked) = send(limits, |nth| async move {
            match nth {
                0 => std::future::pending().await,
                // Closed behind the request, without a byte.
                1 => served(|mut peer| async move { request(&mut peer).await }),
                _ => served(|mut peer| async move {
                    request(&mut peer).await;
                    peer.write_all(format!("{HEAD}a\nDONE\n").as_bytes()).await.unwrap();
                }),
            }
        })
        .await;
        assert_eq!((reply.failure.as_ref(), asked, reply.rare().retries), (None, 3, 2));
        assert_eq!(took, ms(1000 + 100 + 200));
        assert_eq!(reply.sent, Some(Stamp::from_millis(1300)), "of the try that was answered");
        assert_eq!(reply.first_token(), Some(Stamp::from_millis(1300)));
        assert_eq!(reply.rare().reconnects, 0);
    });
}

#[test]
fn what_was_answered_or_took_too_long_is_not_repeated() {
    with_each_reader(async |limits| {
        let limits = Limits { retries: 9, first_byte: Some(ms(500)), ..limits };
        for answer in [
            "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 429 Slow\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
            "H",
            "no HTTP at all\r\n",
            "",
        ] {
            let (reply, _, asked) = send(limits, move |_| async move {
                served(move |mut peer| async move {
                    request(&mut peer).await;
                    peer.write_all(answer.as_bytes()).await.unwrap();
                    if answer.is_empty() {
                        std::future::pending::<()>().await;
                    }
                })
            })
            .await;
            assert_eq!((asked, reply.rare().retries), (1, 0), "{answer}");
            assert!(reply.failure.is_some());
        }
    });
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// One reply with this head and this body.
async fn answered(limits: Limits, head: &str, body: Vec<u8>) -> Reply {
    let answer = [format!("HTTP/1.1 {head}\r\n\r\n").as_bytes(), &body].concat();
    let (reply, ..) = send(limits, move |_| {
        let answer = answer.clone();
        async move {
            served(|mut peer| async move {
                request(&mut peer).await;
                // In two pieces, so that something is decoded before all has come.
                let (first, second) = answer.split_at(answer.len() - 9);
                peer.write_all(first).await.unwrap();
                sleep(ms(10)).await;
                peer.write_all(second).await.unwrap();
            })
        }
    })
    .await;
    reply
}

#[test]
fn compressed_replies_are_decoded_and_damaged_ones_say_so() {
    with_each_reader(async |limits| {
        let ok = "200 OK\r\nContent-Encoding: gzip";
        let reply = answered(limits, ok, gzip(b"one\ntwo\nDONE\n")).await;
        assert_eq!((reply.failure, reply.text.as_str()), (None, "onetwo"));

        let mut cut = gzip(b"one\ntwo\n");
        cut.truncate(cut.len() - 4);
        let failure = answered(limits, ok, cut).await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Truncated, "{failure}");

        let mut damaged = gzip(&b"one\n".repeat(50));
        damaged[12] ^= 0xff;
        let failure = answered(limits, ok, damaged).await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Protocol, "{failure}");
        assert!(failure.detail.contains("damaged"), "{failure}");

        let status = "500 Broken\r\ncontent-encoding: x-gzip";
        let failure = answered(limits, status, gzip(b"what went wrong")).await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Status);
        assert!(failure.detail.contains("what went wrong"), "{failure}");

        let other = answered(limits, "200 OK\r\ncontent-encoding: br", b"whatever it is".to_vec());
        let failure = other.await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Protocol);
        assert!(failure.detail.contains("(br)"), "{failure}");
    });
}

#[test]
fn a_server_that_repeats_the_key_does_not_bring_it_into_a_failure() {
    with_each_reader(async |limits| {
        let connect = || {
            FnConnect::new(|| async {
                served(|mut peer| async move {
                    let mut request = vec![0; 4096];
                    let count = peer.read(&mut request).await.unwrap();
                    // All that was asked, headers included.
                    let body = String::from_utf8_lossy(&request[..count]).into_owned();
                    let head = "HTTP/1.1 401 Who\r\ncontent-length";
                    let answer = format!("{head}: {}\r\n\r\n{body}", body.len());
                    peer.write_all(answer.as_bytes()).await.unwrap();
                })
            })
        };
        let target = Target::new("http://peer".parse().unwrap());
        let target = target.with_header("authorization", "Bearer sk-123456789").unwrap();
        let clock = TestClock(Instant::now());
        let backend = HttpBackend::new(clock, connect(), &target, Arc::new(Lines), limits);
        let mut reply = Reply::default();
        backend.send(&Request::default(), &mut reply).await;
        let failure = reply.failure.unwrap();
        assert!(failure.detail.contains("authorization: Bearer ***"), "{failure}");

        let caller = Caller::new(connect(), target);
        let answer = caller.call(Method::GET, "/x", None, ms(1000)).await.unwrap();
        assert!(answer.excerpt().contains("authorization: Bearer ***"), "{}", answer.excerpt());
    });
}

#[test]
fn a_control_call_is_not_led_elsewhere() {
    with_each_reader(async |_| {
        let connect = FnConnect::new(|| async {
            served(|mut peer| async move {
                peer.read_u8().await.unwrap();
                let head = "HTTP/1.1 307 Elsewhere\r\nlocation: http://other/x?key=sk-123456789";
                let answer = format!("{head}\r\ncontent-length: 0\r\n\r\n");
                peer.write_all(answer.as_bytes()).await.unwrap();
            })
        });
        let target = Target::new("http://peer".parse().unwrap());
        let target = target.with_header("authorization", "Bearer sk-123456789").unwrap();
        let call = Caller::new(connect, target).call(Method::GET, "/x", None, ms(1000)).await;
        let error = call.unwrap_err();
        assert!(error.is_permanent());
        let said = error.to_string();
        assert!(said.contains("307") && said.contains("http://other/x?key=***"), "{said}");
        assert!(said.contains("--base-url"), "{said}");
    });
}
