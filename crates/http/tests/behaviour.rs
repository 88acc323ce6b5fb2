//! The HTTP engine against a scripted peer, over in-memory connections and in virtual time.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "this test's clock is tokio's own")]

mod common;
mod virtual_time;

use bytes::Bytes;
use common::{Lines, TestClock};
use proptest::prelude::*;
use servebench_core::{Backend, Failure, FailureKind, Reply, Request, Stamp};
use servebench_http::{FnConnect, HttpBackend, HttpReader, Limits, Stream, Target};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;
use virtual_time::{in_virtual_time, ms};

/// The server's end of a connection.
struct Peer(DuplexStream);

impl Peer {
    /// Reads one request with the body `{}`; false at the end of the connection.
    async fn request(&mut self) -> bool {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n{}") {
            match self.0.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return false,
            }
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("POST /base/lines HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("x-key: secret\r\n"), "{head}");
        true
    }

    async fn write(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).await.unwrap();
    }

    async fn head(&mut self) {
        self.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await;
    }

    async fn chunk(&mut self, text: &str) {
        self.write(&format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    async fn finish(&mut self) {
        self.write("0\r\n\r\n").await;
    }

    async fn answer(&mut self) {
        self.head().await;
        self.chunk("a\nDONE\n").await;
        self.finish().await;
    }
}

/// A backend whose n-th connection is served by `serve(n, peer)`; and how many were opened.
fn backend<F: Future<Output = ()> + 'static>(
    limits: Limits,
    serve: impl Fn(usize, Peer) -> F + 'static,
) -> (HttpBackend<TestClock, FnConnect>, Rc<RefCell<usize>>) {
    let opened = Rc::new(RefCell::new(0));
    let count = Rc::clone(&opened);
    let connect = FnConnect::new(move || {
        let (client, server) = tokio::io::duplex(64 * 1024);
        tokio::task::spawn_local(serve(*count.borrow(), Peer(server)));
        *count.borrow_mut() += 1;
        async move { Ok(Box::new(client) as Box<dyn Stream>) }
    });
    let target = Target::new("http://peer/base".parse().unwrap());
    let target = target.with_header("x-key", "secret").unwrap();
    let clock = TestClock(Instant::now());
    (HttpBackend::new(clock, connect, &target, Arc::new(Lines), limits), opened)
}

fn request() -> Request {
    Request { body: Bytes::from_static(b"{}"), output_len: 4, ..Request::default() }
}

async fn send(backend: &HttpBackend<TestClock, FnConnect>) -> Reply {
    let mut reply = Reply::default();
    backend.send(&request(), &mut reply).await;
    reply
}

/// Runs `test` once for each reader of HTTP, in virtual time: what they do must be the same.
fn with_each_reader(test: impl AsyncFn(Limits)) {
    for reader in [HttpReader::Lean, HttpReader::Hyper] {
        in_virtual_time(test(Limits { reader, ..Limits::default() }));
    }
}

#[test]
fn stamps_are_those_of_the_reads() {
    with_each_reader(async |limits| {
        let (backend, _) = backend(limits, |_, mut peer| async move {
            assert!(peer.request().await);
            tokio::time::sleep(ms(20)).await;
            peer.head().await;
            for pause in [230, 10, 10] {
                tokio::time::sleep(ms(pause)).await;
                peer.chunk("t\n").await;
            }
            tokio::time::sleep(ms(30)).await;
            peer.chunk("DONE\n").await;
            peer.finish().await;
        });
        let reply = send(&backend).await;
        assert_eq!(reply.failure, None);
        assert_eq!(reply.sent, Some(Stamp(0)));
        assert_eq!(reply.headers, Some(Stamp::from_millis(20)));
        let stamps: Vec<_> = reply.chunks.iter().map(|chunk| chunk.at).collect();
        assert_eq!(stamps, [250, 260, 270].map(Stamp::from_millis));
        assert_eq!(reply.last_line, Some(Stamp::from_millis(300)));
        assert_eq!(reply.rare().connect, Some(Duration::ZERO));
    });
}

#[test]
fn a_chunk_per_read_keeps_the_stamp_of_its_read_when_many_wait() {
    with_each_reader(async |limits| {
        let (backend, _) = backend(limits, |_, mut peer| async move {
            assert!(peer.request().await);
            peer.head().await;
            tokio::time::sleep(ms(5)).await;
            peer.write("2\r\na\n\r\n2\r\nb\n\r\n2\r\nc\n\r\n").await;
            tokio::time::sleep(ms(5)).await;
            peer.write("2\r\nd\n\r\n5\r\nDONE\n\r\n0\r\n\r\n").await;
        });
        let reply = send(&backend).await;
        let stamps: Vec<_> = reply.chunks.iter().map(|chunk| chunk.at).collect();
        assert_eq!(stamps, [5, 5, 5, 10].map(Stamp::from_millis));
    });
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    with_each_reader(async |limits| {
        let (backend, opened) = backend(limits, |_, mut peer| async move {
            while peer.request().await {
                peer.answer().await;
            }
        });
        backend.warm(2).await;
        for _ in 0..10 {
            let reply = send(&backend).await;
            assert_eq!(
                (reply.failure.as_ref(), reply.rare().connect, reply.rare().reconnects),
                (None, None, 0)
            );
        }
        assert_eq!(*opened.borrow(), 2);
    });
}

#[test]
fn cold_connections_serve_one_request_each() {
    with_each_reader(async |limits| {
        let limits = Limits { keep_alive: false, ..limits };
        let (backend, opened) = backend(limits, |_, mut peer| async move {
            while peer.request().await {
                peer.answer().await;
            }
        });
        backend.warm(2).await;
        assert_eq!(*opened.borrow(), 0, "the connect belongs to the request");
        for _ in 0..3 {
            let reply = send(&backend).await;
            assert_eq!(
                (reply.failure.as_ref(), reply.rare().connect),
                (None, Some(Duration::ZERO))
            );
        }
        assert_eq!(*opened.borrow(), 3);
    });
}

#[test]
fn a_connection_closed_while_idle_is_replaced_quietly() {
    with_each_reader(async |limits| {
        let (backend, opened) = backend(limits, |_, mut peer| async move {
            assert!(peer.request().await);
            peer.answer().await;
        });
        for _ in 0..3 {
            let reply = send(&backend).await;
            assert_eq!((reply.failure.as_ref(), reply.rare().reconnects), (None, 0));
            tokio::time::sleep(ms(5)).await;
        }
        assert_eq!(*opened.borrow(), 3);
    });
}

#[test]
fn a_reused_connection_that_dies_without_a_byte_is_replaced_once() {
    with_each_reader(async |limits| {
        let (backend, opened) = backend(limits, |_, mut peer| async move {
            assert!(peer.request().await);
            peer.answer().await;
            peer.request().await; // and closes without an answer
        });
        assert_eq!(send(&backend).await.rare().reconnects, 0);
        let reply = send(&backend).await;
        assert_eq!((reply.failure.as_ref(), reply.rare().reconnects), (None, 1));
        assert_eq!(reply.chunks.len(), 1);
        assert!(reply.rare().connect.is_some());
        assert_eq!(*opened.borrow(), 2);
    });
}

#[test]
fn nothing_else_is_ever_sent_twice() {
    with_each_reader(async |limits| {
        // A new connection that dies without a byte.
        let (fresh, opened) = backend(limits, |_, mut peer| async move {
            peer.request().await;
        });
        let failure = send(&fresh).await.failure.unwrap();
        assert_eq!(failure.kind, FailureKind::Truncated);
        assert_eq!(*opened.borrow(), 1);

        // One that was opened beforehand and has carried nothing yet.
        let (warmed, opened) = backend(limits, |_, mut peer| async move {
            peer.request().await;
        });
        warmed.warm(1).await;
        assert!(send(&warmed).await.failure.is_some());
        assert_eq!(*opened.borrow(), 1);

        // A reused one that dies after the first byte of an answer.
        let (reused, opened) = backend(limits, |_, mut peer| async move {
            assert!(peer.request().await);
            peer.answer().await;
            assert!(peer.request().await);
            peer.write("HTTP/1.1 200").await;
        });
        assert_eq!(send(&reused).await.failure, None);
        let reply = send(&reused).await;
        assert_eq!(reply.failure.as_ref().unwrap().kind, FailureKind::Truncated);
        assert_eq!((reply.rare().reconnects, *opened.borrow()), (0, 1));
    });
}

#[test]
fn what_came_before_a_cut_is_kept() {
    with_each_reader(async |limits| {
        let (backend, _) = backend(limits, |_, mut peer| async move {
            assert!(peer.request().await);
            peer.head().await;
            peer.chunk("a\n").await;
        });
        let reply = send(&backend).await;
        let Failure { kind, detail } = reply.failure.unwrap();
        assert_eq!(kind, FailureKind::Truncated);
        assert!(detail.contains("truncated"), "{detail}");
        assert_eq!(reply.text, "a");
    });
}

#[test]
fn silence_and_overlong_replies_time_out() {
    with_each_reader(async |limits| {
        let limits = Limits { idle: Some(ms(1000)), total: Some(ms(2500)), ..limits };
        let (backend, _) = backend(limits, |nth, mut peer| async move {
            assert!(peer.request().await);
            peer.head().await;
            // The first falls silent, the second never ends.
            for _ in 0..if nth == 0 { 1 } else { 100 } {
                peer.chunk("a\n").await;
                tokio::time::sleep(ms(700)).await;
            }
            std::future::pending::<()>().await;
        });
        let start = Instant::now();
        let failure = send(&backend).await.failure.unwrap();
        assert_eq!((failure.kind, start.elapsed()), (FailureKind::Timeout, ms(1000)));
        assert!(failure.detail.contains("timeout"), "{failure}");

        let start = Instant::now();
        let reply = send(&backend).await;
        assert_eq!(
            (reply.failure.unwrap().kind, start.elapsed()),
            (FailureKind::Timeout, ms(2500))
        );
        assert_eq!(reply.chunks.len(), 4);
    });
}

#[test]
fn a_status_other_than_200_is_kept_with_its_body_and_the_connection_too() {
    with_each_reader(async |limits| {
        let (backend, opened) = backend(limits, |_, mut peer| async move {
            for answer in [
                "503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy",
                "429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n",
                "307 Temporary Redirect\r\nlocation: http://other/\r\ncontent-length: 0\r\n\r\n",
            ] {
                assert!(peer.request().await);
                peer.write(&format!("HTTP/1.1 {answer}")).await;
            }
        });
        let mut details = Vec::new();
        for _ in 0..3 {
            let reply = send(&backend).await;
            let failure = reply.failure.unwrap();
            assert_eq!(failure.kind, FailureKind::Status);
            details.push(failure.detail);
        }
        assert_eq!(&*details[0], "503 Service Unavailable: busy");
        assert_eq!(&*details[1], "429 Too Many Requests");
        assert!(details[2].contains("http://other/"), "{}", details[2]);
        assert_eq!(*opened.borrow(), 1);
    });
}

#[test]
fn a_reply_is_over_at_its_end_mark_whatever_the_server_does_with_the_socket() {
    with_each_reader(async |limits| {
        let (backend, opened) = backend(limits, |_, mut peer| async move {
            assert!(peer.request().await);
            peer.head().await;
            peer.chunk("a\nDONE\n").await;
            std::future::pending::<()>().await;
        });
        let start = Instant::now();
        for _ in 0..2 {
            assert_eq!(send(&backend).await.failure, None);
        }
        assert!(start.elapsed() < ms(10), "{:?}", start.elapsed());
        assert_eq!(*opened.borrow(), 2);
    });
}

#[test]
fn a_late_tail_still_frees_its_connection() {
    with_each_reader(async |limits| {
        let (backend, opened) = backend(limits, |_, mut peer| async move {
            while peer.request().await {
                peer.head().await;
                peer.chunk("a\nDONE\n").await;
                tokio::time::sleep(ms(50)).await;
                peer.finish().await;
            }
        });
        assert_eq!(send(&backend).await.failure, None);
        tokio::time::sleep(ms(100)).await;
        assert_eq!(send(&backend).await.rare().connect, None);
        assert_eq!(*opened.borrow(), 1);
    });
}

/// Responses of which most are well formed: framed in one of the three ways, with lines as a body.
fn responses() -> impl Strategy<Value = Vec<u8>> {
    let line =
        prop_oneof![4 => Just("a\n"), 1 => Just("DONE\n"), 1 => Just("x"), 1 => Just("\r\n")];
    let body = prop::collection::vec(line, 0..8);
    let head = prop_oneof![
        6 => Just("HTTP/1.1 200 OK\r\n"),
        1 => Just("HTTP/1.0 200 OK\r\n"),
        1 => Just("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"),
        1 => Just("HTTP/1.1 503 Service Unavailable\r\n"),
        1 => Just("HTTP/1.1 200 OK\r\nConnection: close\r\n"),
        1 => Just("nothing like it\r\n"),
    ];
    (head, body, 0..4u8, 0..3usize, prop::option::of(any::<prop::sample::Index>())).prop_map(
        |(head, body, framing, surplus, cut)| {
            let text = body.concat();
            let mut bytes = head.as_bytes().to_vec();
            match framing {
                0 => bytes.extend(format!("content-length: {}\r\n\r\n{text}", text.len()).bytes()),
                1 => bytes.extend(format!("\r\n{text}").bytes()),
                _ => {
                    bytes.extend(b"transfer-encoding: chunked\r\n\r\n");
                    for part in body {
                        bytes.extend(format!("{:x}\r\n{part}\r\n", part.len()).bytes());
                    }
                    bytes.extend(if framing == 2 {
                        &b"0\r\n\r\n"[..]
                    } else {
                        b"0\r\nt: v\r\n\r\n"
                    });
                }
            }
            bytes.extend(b"HTTP/1.1 "[..surplus].iter());
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len() + 1));
            }
            bytes
        },
    )
}

/// What a reader makes of two exchanges: each answered by `response`, written in pieces of `step`
/// bytes a millisecond apart, before the server closes.
fn seen_by(
    reader: HttpReader,
    response: &[u8],
    step: usize,
) -> Vec<impl PartialEq + std::fmt::Debug> {
    let response: Rc<[u8]> = response.into();
    in_virtual_time(async {
        let limits = Limits { reader, ..Limits::default() };
        let (backend, opened) = backend(limits, move |_, mut peer| {
            let response = Rc::clone(&response);
            async move {
                assert!(peer.request().await);
                for piece in response.chunks(step) {
                    tokio::time::sleep(ms(1)).await;
                    if peer.0.write_all(piece).await.is_err() {
                        return;
                    }
                }
            }
        });
        let mut seen = Vec::new();
        for _ in 0..2 {
            let reply = send(&backend).await;
            let chunks: Vec<_> = reply.chunks.iter().collect();
            let reconnects = reply.rare().reconnects;
            let kind = reply.failure.map(|failure| failure.kind);
            let stamps = (reply.sent, reply.headers, reply.last_line);
            let opened = *opened.borrow();
            seen.push((reply.status, kind, reply.text, chunks, stamps, reconnects, opened));
            tokio::time::sleep(ms(100)).await;
        }
        seen
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Our own reader and hyper see the same in the same bytes, at the same time.
    #[test]
    fn both_readers_see_the_same(response in responses(), step in 1..200usize) {
        prop_assert_eq!(
            seen_by(HttpReader::Lean, &response, step),
            seen_by(HttpReader::Hyper, &response, step)
        );
    }
}
