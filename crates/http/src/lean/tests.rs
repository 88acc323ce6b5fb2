//! The reader on its own: any cut, any bytes.

use super::incoming::Place;
use super::{Malformed, complete, preamble};
use crate::fuzzing::{self, read};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use proptest::prelude::*;

const END: Result<Place, Malformed> = Ok(Place::End { reusable: true });
const LAST: Result<Place, Malformed> = Ok(Place::End { reusable: false });

fn case(response: &str) -> (u16, String, Result<Place, Malformed>) {
    let (seen, place) = read(response.as_bytes(), &[]);
    let body = String::from_utf8(seen.body).unwrap();
    (seen.head.map_or(0, |head| head.status), body, place)
}

#[test]
fn bodies_end_as_http_says() {
    let ok = |body: &str, place| (200, body.to_owned(), place);
    for (response, want) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", ok("abc", END)),
        ("HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\nabc", ok("abc", END)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", ok("", END)),
        ("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nab", ok("ab", Ok(Place::Amid))),
        ("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nabc", ok("a", LAST)),
        ("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 1\r\n\r\na", ok("a", LAST)),
        ("HTTP/1.1 200 OK\r\n\r\nall of it", ok("all of it", LAST)),
        ("HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", ok("a", LAST)),
        ("HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\na", ok("a", END)),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            ok("abc", END),
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n1;x=\"y\"\r\na\r\n0 \r\nt: v\r\nu: w\r\n\r\n",
            ok("a", END),
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n",
            ok("a", LAST),
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nx", ok("x", LAST)),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na",
            ok("a", END),
        ),
    ] {
        assert_eq!(case(response), want, "{response}");
    }
    let (status, body, place) = case("HTTP/1.1 204 No Content\r\n\r\n");
    assert_eq!((status, &*body, place), (204, "", END));
}

#[test]
fn what_is_no_http_is_said_to_be_none() {
    for response in [
        "SSH-2.0-OpenSSH_9\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: b\rc",
    ] {
        assert!(case(response).2.is_err(), "{response}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "a: b\r\n".repeat(100_000));
    assert!(case(&endless).2.is_err());
    let trailer = "a: b\r\n".repeat(10_000);
    let endless = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{trailer}");
    assert!(case(&endless).2.is_err());
}

#[test]
fn a_request_is_written_as_http_wants_it() {
    let mut headers = HeaderMap::new();
    headers.insert("host", HeaderValue::from_static("here:1"));
    headers.insert("content-length", HeaderValue::from_static("99"));
    let head = preamble(&Method::POST, &Uri::from_static("/v1/x?y=1"), &headers);
    let own = [(HeaderName::from_static("x-key"), HeaderValue::from_static("v"))];
    let head = String::from_utf8(complete(&head, &own, b"{}")).unwrap();
    assert_eq!(
        head,
        "POST /v1/x?y=1 HTTP/1.1\r\nhost: here:1\r\nx-key: v\r\ncontent-length: 2\r\n\r\n"
    );
}

/// A response with the body cut into `chunks`.
fn chunked(chunks: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for chunk in chunks.iter().filter(|chunk| !chunk.is_empty()) {
        bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
        bytes.extend(chunk);
        bytes.extend(b"\r\n");
    }
    bytes.extend(b"0\r\n\r\n");
    bytes
}

/// Bytes that look like the beginnings of responses more often than chance would have it.
fn responses() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop_oneof![
        Just(b"HTTP/1.1 200 OK\r\n".as_slice()),
        Just(b"HTTP/1.1 100 Continue\r\n\r\n".as_slice()),
        Just(b"HTTP/1.0 503 busy\r\n".as_slice()),
        Just(b"content-length: 5\r\n".as_slice()),
        Just(b"transfer-encoding: chunked\r\n".as_slice()),
        Just(b"connection: close\r\n".as_slice()),
        Just(b"\r\n".as_slice()),
        Just(b"5\r\nhello\r\n".as_slice()),
        Just(b"0\r\n".as_slice()),
        Just(b";x".as_slice()),
        Just(b"ffff".as_slice()),
        Just(b"\n".as_slice()),
        Just(b"\0\xff".as_slice()),
    ];
    prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn a_body_is_whole_however_it_is_cut(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..8),
        cuts in prop::collection::vec(any::<usize>(), 0..20),
    ) {
        let (seen, place) = read(&chunked(&chunks), &cuts);
        prop_assert_eq!(place, END);
        prop_assert_eq!(seen.body, chunks.concat());
    }

    #[test]
    fn how_bytes_are_cut_changes_nothing(
        seed in any::<u8>(),
        bytes in prop_oneof![responses(), prop::collection::vec(any::<u8>(), 0..200)],
    ) {
        fuzzing::response(&[&[seed], &bytes[..]].concat());
    }
}
