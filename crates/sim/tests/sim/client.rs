//! A client that notes when the pieces of a reply came.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use servebench_sim::Sim;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

#[expect(clippy::disallowed_methods, reason = "tests run on tokio's paused clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

pub(crate) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// One connection to a simulator, in memory.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    tasks: JoinSet<()>,
}

#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    /// Time to the head.
    pub(crate) head_at: Duration,
    /// Pieces of the body, with the time since the request was sent.
    pub(crate) pieces: Vec<(Duration, Bytes)>,
    /// Whether the body came to its end.
    pub(crate) complete: bool,
    /// Time to the end of the body, or to its break.
    pub(crate) ended_at: Duration,
}

impl Client {
    pub(crate) async fn new(sim: &Sim) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let mut tasks = JoinSet::new();
        let sim = sim.clone();
        tasks.spawn(async move { sim.serve_connection(far).await });
        let (sender, connection) = http1::handshake(TokioIo::new(near)).await.expect("handshake");
        tasks.spawn(async move { drop(connection.await) });
        Self { sender, tasks }
    }

    pub(crate) async fn request(&mut self, request: http::Request<Full<Bytes>>) -> Reply {
        self.try_request(request).await.expect("an answer")
    }

    pub(crate) async fn try_request(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> hyper::Result<Reply> {
        let start = now();
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (parts, mut body) = response.into_parts();
        let mut reply = Reply {
            status: parts.status.as_u16(),
            headers: parts.headers,
            head_at: now() - start,
            pieces: Vec::new(),
            complete: true,
            ended_at: Duration::ZERO,
        };
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                reply.complete = false;
                break;
            };
            reply.pieces.push((now() - start, frame.into_data().expect("data")));
        }
        reply.ended_at = now() - start;
        Ok(reply)
    }

    pub(crate) async fn post(&mut self, path: &str, body: &str) -> Reply {
        self.request(post(path, body)).await
    }

    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        let request = http::Request::get(path).header("host", "sim");
        self.request(request.body(Full::default()).expect("a request")).await
    }

    /// Whether the server has closed the connection.
    pub(crate) async fn closed(&mut self, within: Duration) -> bool {
        tokio::time::timeout(within, self.tasks.join_next()).await.is_ok()
    }
}

pub(crate) fn post(path: &str, body: &str) -> http::Request<Full<Bytes>> {
    let request = http::Request::post(path).header("host", "sim");
    request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).expect("a request")
}

impl Reply {
    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.pieces.iter().flat_map(|(_, piece)| piece.to_vec()).collect();
        String::from_utf8(bytes).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The stream's events, `[DONE]` as a string, each with the time when its end came.
    pub(crate) fn events(&self) -> Vec<(Duration, Value)> {
        let mut events = Vec::new();
        let mut text = String::new();
        for (at, piece) in &self.pieces {
            text.push_str(std::str::from_utf8(piece).expect("ASCII"));
            while let Some((event, rest)) = text.split_once("\n\n") {
                let data = event.strip_prefix("data: ").expect("a data line");
                let value = match data {
                    "[DONE]" => Value::from(data),
                    json => serde_json::from_str(json).expect("JSON"),
                };
                events.push((*at, value));
                text = rest.to_owned();
            }
        }
        events
    }

    pub(crate) fn values(&self) -> Vec<Value> {
        self.events().into_iter().map(|(_, value)| value).collect()
    }

    pub(crate) fn times(&self) -> Vec<Duration> {
        self.pieces.iter().map(|(at, _)| *at).collect()
    }
}
