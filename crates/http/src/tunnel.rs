//! A way through a proxy that only carries bytes (`CONNECT`).

use crate::connect::Stream;
use crate::{BaseUrl, Proxy};
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Most bytes of a proxy's answer.
const ANSWER_LIMIT: usize = 16 * 1024;

/// What a proxy is asked to connect to.
pub(crate) fn destination(base: &BaseUrl) -> String {
    let host = base.host();
    let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    format!("{bracketed}:{}", base.port())
}

/// Has the proxy at the other end of `stream` connect it to `destination`.
pub(crate) async fn open(
    stream: &mut Box<dyn Stream>,
    proxy: &Proxy,
    destination: &str,
) -> io::Result<()> {
    let mut request =
        format!("CONNECT {destination} HTTP/1.1\r\nhost: {destination}\r\n").into_bytes();
    if let Some(authorization) = proxy.authorization() {
        request.extend_from_slice(b"proxy-authorization: ");
        request.extend_from_slice(authorization.as_bytes());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    stream.write_all(&request).await?;
    stream.flush().await?;
    let mut answer = Vec::new();
    // The server speaks after us, so that nothing follows an answer that agrees.
    while !answer.ends_with(b"\r\n\r\n") {
        if answer.len() >= ANSWER_LIMIT {
            return Err(refused(proxy, "an answer without an end"));
        }
        match stream.read_u8().await {
            Ok(byte) => answer.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(refused(proxy, "the end of the connection"));
            }
            Err(error) => return Err(error),
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    match response.parse(&answer) {
        Ok(_) if response.code.is_some_and(|code| (200..300).contains(&code)) => Ok(()),
        Ok(_) => {
            let words = format!("{} {}", response.code.unwrap_or(0), response.reason.unwrap_or(""));
            Err(refused(proxy, words.trim_end()))
        }
        Err(_) => Err(refused(proxy, "something that is no HTTP")),
    }
}

fn refused(proxy: &Proxy, answer: &str) -> io::Error {
    let answer = proxy.secrets().hidden(answer);
    io::Error::other(format!("the proxy {proxy} answered CONNECT with {answer}"))
}
