//! Receive times from the kernel, over loopback: they are those of the bytes, not of the reads.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "the kernel stamps in real time")]

mod common;

use bytes::Bytes;
use common::{Lines, TestClock};
use proptest::prelude::*;
use servebench_core::{Backend, Chunk, Clock, FailureKind, Reply, Request, Stamp};
use servebench_http::{
    BaseUrl, HttpBackend, HttpReader, Limits, Stamps, Target, TcpConnect, TlsOptions,
};
use servebench_reactor::Reactor;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use tokio::task::{LocalSet, spawn_local};
use tokio::time::Instant;

/// How long the client is kept from reading.
const BUSY: Duration = Duration::from_millis(5);

/// The chunks of a reply, each written before the client could read the one before it.
const CHUNKS: [&str; 3] = ["2\r\na\n\r\n", "2\r\nb\n\r\n", "7\r\nc\nDONE\n\r\n0\r\n\r\n"];

/// Answers one request while its client is busy, and tells when each chunk was written: not before,
/// not after.
///
/// Returns the open connection: its end would be stamped, too.
fn serve(
    mut peer: TcpStream,
    clock: TestClock,
    written: &Sender<Vec<(Stamp, Stamp)>>,
) -> TcpStream {
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        request.extend(byte);
    }
    peer.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let mut times = Vec::new();
    for chunk in CHUNKS {
        let before = clock.now();
        peer.write_all(chunk.as_bytes()).unwrap();
        times.push((before, clock.now()));
        while clock.now().since(before) < BUSY {}
    }
    written.send(times).unwrap();
    peer
}

/// Who looks after the client's sockets.
#[derive(Clone, Copy, Debug)]
enum By {
    Runtime,
    Reactor,
}

impl By {
    /// Runs `test` on a runtime whose sockets are looked after so.
    fn run<T>(self, clock: TestClock, test: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            if let Self::Reactor = self {
                spawn_local(Reactor::new().unwrap().drive(move || clock.now()).unwrap());
            }
            test.await
        })
    }
}

/// Sends one request whose client is busy from then on until all of the reply has arrived.
fn send_while_busy(stamps: Stamps, reader: HttpReader, by: By) -> (Reply, Vec<(Stamp, Stamp)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let clock = TestClock(Instant::now());
    let (done, written): (_, Receiver<Vec<(Stamp, Stamp)>>) = channel();
    let server = std::thread::spawn(move || {
        let (peer, _) = listener.accept().unwrap();
        peer.set_nodelay(true).unwrap();
        serve(peer, clock, &done)
    });
    let result = by.run(clock, async {
        let base: BaseUrl = format!("http://127.0.0.1:{port}").parse().unwrap();
        let connect = TcpConnect::resolve(&base, &TlsOptions::default()).await.unwrap();
        let limits = Limits { reader, ..Limits::default() };
        let (connect, target) = (connect.with_stamps(stamps), Target::new(base));
        let backend = HttpBackend::new(clock, connect, &target, Arc::new(Lines), limits);
        backend.warm(1).await;
        let request = Request { body: Bytes::from_static(b"{}"), ..Request::default() };
        let mut reply = Reply::default();
        // The wait blocks the thread: a client that is late.
        let busy = async { written.recv().unwrap() };
        let ((), times) = tokio::join!(backend.send(&request, &mut reply), busy);
        (reply, times)
    });
    drop(server.join().unwrap());
    result
}

/// The truth lies in the interval that each chunk has.
fn check_intervals(chunks: &[Chunk], times: &[(Stamp, Stamp)], slack: Duration) {
    assert_eq!(chunks.len(), times.len());
    for (chunk, (before, after)) in chunks.iter().zip(times) {
        assert!(chunk.after.offset() <= after.offset() + slack, "{chunk:?} {times:?}");
        assert!(chunk.at.offset() + slack >= before.offset(), "{chunk:?} {times:?}");
    }
}

#[test]
fn a_late_client_knows_when_bytes_arrived_or_says_since_when() {
    let readers = [HttpReader::Lean, HttpReader::Hyper];
    for (reader, by) in readers.into_iter().flat_map(|it| [(it, By::Runtime), (it, By::Reactor)]) {
        // The kernel begins to stamp a while after the first socket asked it to.
        let told = (0..100).any(|_| {
            let (reply, times) = send_while_busy(Stamps::Kernel, reader, by);
            assert_eq!(reply.failure, None);
            let chunks: Vec<Chunk> = reply.chunks.iter().collect();
            let error = reply.read_lag.map_or(Duration::ZERO, |lag| lag.clock_error());
            let slack = error + Duration::from_nanos(64);
            check_intervals(&chunks, &times, slack);
            // What was read together with the newest byte of all has no more than bounds.
            let last = chunks[2];
            for chunk in &chunks[..2] {
                assert!(chunk.at < last.at || !chunk.is_exact(), "{chunks:?}");
            }
            let (before, after) = times[2];
            let is_late = reply.read_lag.is_some_and(|lag| {
                // It waited while the client went on to be busy.
                lag.longest() + slack + after.since(before) >= BUSY
            });
            last.is_exact() && is_late
        });
        assert!(told, "no late read was stamped by the kernel: {reader:?} {by:?}");
    }
}

#[test]
fn stamps_in_user_space_are_those_of_the_reads() {
    let (reply, times) = send_while_busy(Stamps::User, HttpReader::Auto, By::Reactor);
    assert_eq!(reply.failure, None);
    assert_eq!(reply.read_lag, None);
    for chunk in reply.chunks.iter() {
        assert!(
            chunk.at.offset() + Duration::from_nanos(64) >= times[2].0.offset() + BUSY,
            "{chunk:?} {times:?}"
        );
    }
}

/// Answers requests on one connection after the other: with each of `responses`, in pieces.
fn answer(listener: &TcpListener, responses: Vec<Vec<Vec<u8>>>) {
    let mut peer = None;
    for pieces in responses {
        let mut request = Vec::new();
        loop {
            let stream: &mut TcpStream = peer.get_or_insert_with(|| {
                let (peer, _) = listener.accept().unwrap();
                peer.set_nodelay(true).unwrap();
                peer
            });
            let mut byte = [0];
            match stream.read(&mut byte) {
                Ok(1) => request.extend(byte),
                _ => peer = None,
            }
            if request.ends_with(b"\r\n\r\n{}") {
                break;
            }
        }
        for piece in pieces {
            let Some(peer) = &mut peer else { break };
            peer.write_all(&piece).unwrap();
            std::thread::yield_now();
        }
    }
}

/// The replies to as many requests as there are `responses`, one after the other.
fn replies(responses: &[Vec<Vec<u8>>], by: By) -> Vec<Reply> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let clock = TestClock(Instant::now());
    let (count, responses) = (responses.len(), responses.to_vec());
    let server = std::thread::spawn(move || answer(&listener, responses));
    let replies = by.run(clock, async {
        let base: BaseUrl = format!("http://127.0.0.1:{port}").parse().unwrap();
        let connect = TcpConnect::resolve(&base, &TlsOptions::default()).await.unwrap();
        let limits = Limits { idle: Some(Duration::from_secs(20)), ..Limits::default() };
        let backend = HttpBackend::new(clock, connect, &Target::new(base), Arc::new(Lines), limits);
        let request = Request { body: Bytes::from_static(b"{}"), ..Request::default() };
        let mut replies = Vec::new();
        for _ in 0..count {
            let mut reply = Reply::default();
            backend.send(&request, &mut reply).await;
            replies.push(reply);
        }
        replies
    });
    server.join().unwrap();
    replies
}

/// What of a reply does not depend on when its bytes came.
fn gist(reply: &Reply) -> (Option<u16>, String, usize, Option<String>) {
    let failure = reply.failure.as_ref().map(ToString::to_string);
    (reply.status, reply.text.clone(), reply.chunks.len(), failure)
}

/// A response with tokens or without, whose reply may not say that it is over, cut somewhere.
fn response() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let lines = prop::collection::vec("[a-z]{0,40}", 0..12);
    let whole = (lines, any::<bool>(), 0..3u8).prop_map(|(lines, done, framing)| {
        let mut body = lines.iter().fold(String::new(), |body, line| body + line + "\n");
        if done {
            body.push_str("DONE\n");
        }
        match framing {
            0 => format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
            1 => format!(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
                body.split_inclusive('\n').fold(String::new(), |chunks, line| {
                    chunks + &format!("{:x}\r\n{line}\r\n", line.len())
                })
            ),
            _ => format!("HTTP/1.1 429 Slow\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
        }
    });
    (whole, prop::collection::vec(any::<prop::sample::Index>(), 0..5)).prop_map(|(whole, cuts)| {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(whole.len())).collect();
        cuts.extend([0, whole.len()]);
        cuts.sort_unstable();
        cuts.dedup();
        cuts.windows(2).map(|pair| whole.as_bytes()[pair[0]..pair[1]].to_vec()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Who looks after the sockets changes no reply.
    #[test]
    fn a_reply_is_the_same_whoever_looks_after_the_socket(
        responses in prop::collection::vec(response(), 1..5),
    ) {
        let [ours, theirs] = [By::Reactor, By::Runtime].map(|by| {
            replies(&responses, by).iter().map(gist).collect::<Vec<_>>()
        });
        prop_assert_eq!(ours, theirs);
    }
}

#[test]
fn what_had_come_of_a_request_that_is_given_up_is_kept() {
    for by in [By::Runtime, By::Reactor] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let clock = TestClock(Instant::now());
        let (over, wait) = channel::<()>();
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\na\n\r\n";
            peer.write_all(head).unwrap();
            wait.recv().unwrap_or_default();
        });
        let reply = by.run(clock, async {
            let base: BaseUrl = format!("http://127.0.0.1:{port}").parse().unwrap();
            let connect = TcpConnect::resolve(&base, &TlsOptions::default()).await.unwrap();
            let limits = Limits { idle: Some(Duration::from_millis(50)), ..Limits::default() };
            let target = Target::new(base);
            let backend = HttpBackend::new(clock, connect, &target, Arc::new(Lines), limits);
            let request = Request { body: Bytes::from_static(b"{}"), ..Request::default() };
            let mut silent = Reply { keep_pieces: true, ..Reply::default() };
            backend.send(&request, &mut silent).await;
            silent
        });
        drop(over);
        server.join().unwrap();
        let failure = reply.failure.as_ref().map(|failure| failure.kind);
        assert_eq!(failure, Some(FailureKind::Timeout), "{by:?}: {reply:?}");
        assert_eq!((&*reply.text, reply.chunks.len()), ("a", 1), "{by:?}");
        assert!(reply.keep_pieces && reply.sent.is_some(), "{by:?}");
    }
}
