//! Receive times from the kernel, over loopback: they are those of the bytes, not of the reads.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "the kernel stamps in real time")]

mod common;

use bytes::Bytes;
use common::{Lines, TestClock};
use servebench_core::{Backend, Chunk, Clock, Reply, Request, Stamp};
use servebench_http::{
    BaseUrl, HttpBackend, HttpReader, Limits, Stamps, Target, TcpConnect, TlsOptions,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
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

/// Sends one request whose client is busy from then on until all of the reply has arrived.
fn send_while_busy(stamps: Stamps, reader: HttpReader) -> (Reply, Vec<(Stamp, Stamp)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let clock = TestClock(Instant::now());
    let (done, written): (_, Receiver<Vec<(Stamp, Stamp)>>) = channel();
    let server = std::thread::spawn(move || {
        let (peer, _) = listener.accept().unwrap();
        peer.set_nodelay(true).unwrap();
        serve(peer, clock, &done)
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let result = runtime.block_on(async {
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
    for reader in [HttpReader::Lean, HttpReader::Hyper] {
        // The kernel begins to stamp a while after the first socket asked it to.
        let told = (0..100).any(|_| {
            let (reply, times) = send_while_busy(Stamps::Kernel, reader);
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
        assert!(told, "no late read was stamped by the kernel");
    }
}

#[test]
fn stamps_in_user_space_are_those_of_the_reads() {
    let (reply, times) = send_while_busy(Stamps::User, HttpReader::Auto);
    assert_eq!(reply.failure, None);
    assert_eq!(reply.read_lag, None);
    for chunk in reply.chunks.iter() {
        assert!(
            chunk.at.offset() + Duration::from_nanos(64) >= times[2].0.offset() + BUSY,
            "{chunk:?} {times:?}"
        );
    }
}
