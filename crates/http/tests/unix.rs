//! A server behind a Unix socket: reached by its path, stamped by the reads.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up has failed")]
#![expect(clippy::disallowed_methods, reason = "this test's clock is tokio's own")]

mod common;

use bytes::Bytes;
use common::{Lines, TestClock};
use servebench_core::{Backend, Reply, Request};
use servebench_http::{
    BaseUrl, HttpBackend, HttpReader, Limits, Stamps, Target, TcpConnect, TlsOptions,
};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use tokio::time::Instant;

/// Answers one request; returns its head.
fn serve(listener: &UnixListener) -> String {
    let (mut peer, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    while !request.ends_with(b"\r\n\r\n{}") {
        let mut byte = [0];
        peer.read_exact(&mut byte).unwrap();
        request.extend(byte);
    }
    peer.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\na\nb\nDONE\n").unwrap();
    String::from_utf8(request).unwrap()
}

#[tokio::test]
async fn a_request_goes_over_a_unix_socket() {
    for reader in [HttpReader::Lean, HttpReader::Hyper] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.sock");
        let listener = UnixListener::bind(&path).unwrap();
        let server = std::thread::spawn(move || serve(&listener));
        let base: BaseUrl = format!("unix:{}", path.display()).parse().unwrap();
        let connect = TcpConnect::resolve(&base, &TlsOptions::default()).await.unwrap();
        let connect = connect.with_stamps(Stamps::Kernel);
        assert_eq!(connect.stamps(), Stamps::User, "the kernel tells none here");
        let limits = Limits { reader, ..Limits::default() };
        let clock = TestClock(Instant::now());
        let backend = HttpBackend::new(clock, connect, &Target::new(base), Arc::new(Lines), limits);
        let request = Request { body: Bytes::from_static(b"{}"), ..Request::default() };
        let mut reply = Reply::default();
        backend.send(&request, &mut reply).await;
        assert_eq!((&reply.failure, reply.status), (&None, Some(200)));
        assert_eq!((reply.chunks.len(), reply.read_lag), (2, None));
        let head = server.join().unwrap();
        assert!(head.starts_with("POST /lines HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("host: localhost\r\n"), "{head}");
    }
}

#[tokio::test]
async fn a_socket_that_is_not_there_is_a_failed_connection() {
    let base: BaseUrl = "unix:/nowhere/server.sock".parse().unwrap();
    let connect = TcpConnect::resolve(&base, &TlsOptions::default()).await.unwrap();
    let clock = TestClock(Instant::now());
    let target = Target::new(base);
    let backend = HttpBackend::new(clock, connect, &target, Arc::new(Lines), Limits::default());
    let mut reply = Reply::default();
    backend.send(&Request::default(), &mut reply).await;
    let failure = reply.failure.unwrap();
    assert_eq!(failure.kind, servebench_core::FailureKind::Connect, "{failure}");
}
