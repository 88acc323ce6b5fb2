//! The head of a response.

use super::Malformed;
use super::chunked::Chunked;
use crate::wire::Head;

/// Most header lines of a response, and most bytes of its head.
const HEADERS: usize = 128;
pub(super) const HEAD_LIMIT: usize = 256 * 1024;

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    Length(u64),
    Chunked(Chunked),
    /// With the connection.
    Close,
}

/// A head, what is behind it, and whether the connection outlives that.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    pub(super) head: Head,
    pub(super) framing: Framing,
    pub(super) keep_alive: bool,
    /// Bytes it takes up.
    pub(super) size: usize,
}

/// Parses the head at the start of `bytes`; `None` while it is not complete. Interim responses
/// (status 1xx) are skipped.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Parsed>, Malformed> {
    let mut start = 0;
    loop {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let size = match response.parse(&bytes[start..]) {
            Ok(httparse::Status::Complete(size)) => size,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => {
                return Err(Malformed("the response has too many headers"));
            }
            Err(_) => return Err(Malformed("the response is no HTTP/1.1")),
        };
        let status = response.code.unwrap_or(0);
        if status == 101 {
            return Err(Malformed("the server wants to switch protocols, which was not asked for"));
        }
        if (100..200).contains(&status) {
            start += size;
            continue;
        }
        let mut parsed = interpret(&response, status)?;
        parsed.size = start + size;
        return Ok(Some(parsed));
    }
}

fn interpret(response: &httparse::Response<'_, '_>, status: u16) -> Result<Parsed, Malformed> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).trim().to_owned();
    let mut head = Head { status, location: None, encoding: None, metadata: None };
    let (mut length, mut chunked, mut coded) = (None, false, false);
    let mut keep_alive = response.version == Some(1);
    for header in response.headers.iter() {
        let (name, value) = (header.name, header.value.trim_ascii());
        if name.eq_ignore_ascii_case("content-length") {
            length = Some(content_length(value, length)?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            let last = value.rsplit(|byte| *byte == b',').next().unwrap_or_default();
            chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
        } else if name.eq_ignore_ascii_case("connection") {
            for word in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
                if word.eq_ignore_ascii_case(b"close") {
                    keep_alive = false;
                } else if word.eq_ignore_ascii_case(b"keep-alive") && response.version == Some(0) {
                    keep_alive = true;
                }
            }
        } else if name.eq_ignore_ascii_case("location") {
            head.location = Some(text(value));
        } else if name.eq_ignore_ascii_case("content-encoding") {
            head.encoding = Some(text(value));
        } else if name.eq_ignore_ascii_case("metadata") {
            head.metadata = Some(text(value));
        }
    }
    if coded && response.version == Some(0) {
        return Err(Malformed(
            "an HTTP/1.0 response has a transfer coding, which 1.0 does not know",
        ));
    }
    let framing = match (coded, length) {
        _ if matches!(status, 204 | 304) => Framing::Length(0),
        (true, _) if chunked => Framing::Chunked(Chunked::START),
        (true, _) | (false, None) => Framing::Close,
        (false, Some(length)) => Framing::Length(length),
    };
    // With both, somebody on the way may see another end of this body than we do.
    keep_alive &= framing != Framing::Close && !(coded && length.is_some());
    Ok(Parsed { head, framing, keep_alive, size: 0 })
}

/// The length that a header line gives, which must agree with those before it.
fn content_length(value: &[u8], before: Option<u64>) -> Result<u64, Malformed> {
    let mut length = before;
    for item in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
        let digits = !item.is_empty() && item.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(item).ok().filter(|_| digits);
        let number = number.and_then(|number| number.parse().ok());
        match (number, length) {
            (Some(number), None) => length = Some(number),
            (Some(number), Some(so_far)) if number == so_far => {}
            _ => return Err(Malformed("the content-length of the response is not one number")),
        }
    }
    length.ok_or(Malformed("the content-length of the response is not one number"))
}
