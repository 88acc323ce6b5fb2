//! Single calls outside the measured load: control, lookups.

use crate::connect::Connect;
use crate::lean::Room;
use crate::meter::Tap;
use crate::target::Target;
use crate::wire::{Call, Connection, Ended, Head, HttpReader, Visit};
use bytes::Bytes;
use http::Method;
use servebench_core::{Clock, Progress, Stamp};
use std::future::Future;
use std::io;
use std::time::Duration;

/// Largest answer to a control call, in bytes.
const ANSWER_LIMIT: usize = 64 << 20;

/// The answer to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The body, whole.
    pub body: Vec<u8>,
}

impl Answer {
    /// True for status 200.
    pub fn is_ok(&self) -> bool {
        self.status == 200
    }

    /// The start of the body as text, for messages.
    pub fn excerpt(&self) -> String {
        let text = String::from_utf8_lossy(&self.body[..self.body.len().min(2048)]);
        let text = text.trim();
        if text.is_empty() { format!("status {}", self.status) } else { text.to_owned() }
    }
}

/// Why a call got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No connection could be made.
    #[error("{method} {url}: cannot connect")]
    Connect {
        /// HTTP method.
        method: Method,
        /// What was called.
        url: String,
        /// What the system says.
        source: io::Error,
    },
    /// The answer did not come in time.
    #[error("{method} {url}: no answer within {limit:?}")]
    Timeout {
        /// HTTP method.
        method: Method,
        /// What was called.
        url: String,
        /// The time allowed.
        limit: Duration,
    },
    /// The answer broke off or was no HTTP.
    #[error("{method} {url}: {reason}")]
    Broken {
        /// HTTP method.
        method: Method,
        /// What was called.
        url: String,
        /// What happened.
        reason: String,
    },
}

impl CallError {
    /// True when trying again later cannot help (a certificate that is not trusted).
    pub fn is_permanent(&self) -> bool {
        matches!(self, Self::Connect { source, .. } if source.kind() == io::ErrorKind::InvalidData)
    }
}

/// Makes single calls to one server, each on a connection of its own.
#[derive(Clone, Debug)]
pub struct Caller<K> {
    connect: K,
    target: Target,
}

impl<K: Connect> Caller<K> {
    /// Calls `target` through `connect`.
    pub fn new(connect: K, target: Target) -> Self {
        Self { connect, target }
    }

    /// The server that is called.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Calls `path` (below the base URL) with an optional JSON body.
    pub async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<Bytes>,
        limit: Duration,
    ) -> Result<Answer, CallError> {
        let url = self.target.base().url(path);
        match tokio::time::timeout(limit, self.exchange(&method, &url, path, body)).await {
            Ok(result) => result,
            Err(_) => Err(CallError::Timeout { method, url, limit }),
        }
    }

    async fn exchange(
        &self,
        method: &Method,
        url: &str,
        path: &str,
        body: Option<Bytes>,
    ) -> Result<Answer, CallError> {
        let broken = |reason: String| CallError::Broken {
            method: method.clone(),
            url: url.to_owned(),
            reason,
        };
        let (tap, room) = (Tap::new(NoClock), Room::default());
        let opening = Connection::open(&self.connect, tap, HttpReader::Hyper, &room);
        let mut connection = opening.await.map_err(|source| CallError::Connect {
            method: method.clone(),
            url: url.to_owned(),
            source,
        })?;
        let headers = match body {
            Some(_) => self.target.headers_for_json(),
            None => self.target.headers().clone(),
        };
        let call = Call::new(method.clone(), self.target.uri(path), headers);
        let mut answer = Gathered(Answer { status: 0, body: Vec::new() });
        let ended = connection.exchange(&call, &[], &body.unwrap_or_default(), &mut answer).await;
        match ended {
            Ended::Complete => Ok(answer.0),
            Ended::Early => Err(broken(format!("the answer is over {ANSWER_LIMIT} bytes"))),
            Ended::Broken(failure) | Ended::NoAnswer(failure) => Err(broken(failure.detail.into())),
        }
    }
}

/// An answer as it comes.
struct Gathered(Answer);

impl Visit for Gathered {
    fn head(&mut self, head: &Head) -> Progress {
        self.0.status = head.status;
        Progress::More
    }

    fn data(&mut self, bytes: &[u8]) -> Progress {
        self.0.body.extend_from_slice(bytes);
        if self.0.body.len() > ANSWER_LIMIT { Progress::Done } else { Progress::More }
    }
}

/// Control calls are not timed.
#[derive(Clone, Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> Stamp {
        Stamp(0)
    }

    fn sleep_until(&self, _at: Stamp) -> impl Future<Output = ()> {
        std::future::pending()
    }
}
