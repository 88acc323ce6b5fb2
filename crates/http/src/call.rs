//! Single calls outside the measured load: control, lookups.

use crate::coding::is_plain;
use crate::connect::Connect;
use crate::lean::Room;
use crate::meter::Tap;
use crate::target::Target;
use crate::wire::{Connection, Ended, Head, HttpReader, Visit};
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

    /// The start of the body as text, for messages. An answer that is none of status 200 holds none of the
    /// headers that it was asked with.
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
    /// The server says that the answer is elsewhere. That is not followed: it would be another server
    /// that is measured, which must not get the key.
    #[error(
        "{method} {url} answered {status}: redirect to {to} refused; give that address as --base-url"
    )]
    Redirect {
        /// HTTP method.
        method: Method,
        /// What was called.
        url: String,
        /// HTTP status.
        status: u16,
        /// Where it leads.
        to: String,
    },
}

impl CallError {
    /// True when trying again later cannot help (a certificate that is not trusted, a redirect, a
    /// protocol that is not spoken).
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Connect { source, .. } => {
                matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::Unsupported)
            }
            Self::Redirect { .. } => true,
            Self::Timeout { .. } | Self::Broken { .. } => false,
        }
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
        let spoken = self.connect.spoken();
        let call = self.target.call(method.clone(), path, headers, &spoken);
        let mut answer = Gathered::default();
        let ended = connection.exchange(&call, &[], &body.unwrap_or_default(), &mut answer).await;
        let Gathered { status, body, redirect, coding } = answer;
        let secrets = self.target.secrets_with(&spoken);
        match (ended, coding, redirect) {
            (_, Some(coding), _) => {
                Err(broken(format!("the answer is compressed ({coding}) in a way not spoken here")))
            }
            (Ended::Complete, None, Some(to)) => Err(CallError::Redirect {
                method: method.clone(),
                url: url.to_owned(),
                status,
                to: secrets.hidden(&to).into_owned(),
            }),
            (Ended::Complete, None, None) if status == 200 => Ok(Answer { status, body }),
            (Ended::Complete, None, None) => {
                // It is for messages, and may repeat the key that it does not like.
                let body = secrets.hidden(&String::from_utf8_lossy(&body)).into_owned();
                Ok(Answer { status, body: body.into_bytes() })
            }
            (Ended::Early, ..) => Err(broken(format!("the answer is over {ANSWER_LIMIT} bytes"))),
            (Ended::Broken(failure) | Ended::NoAnswer(failure), ..) => {
                Err(broken(secrets.hidden(&failure.detail).into_owned()))
            }
        }
    }
}

/// An answer as it comes.
#[derive(Default)]
struct Gathered {
    status: u16,
    body: Vec<u8>,
    /// Where it says that the answer really is.
    redirect: Option<String>,
    /// A coding that is not undone.
    coding: Option<String>,
}

impl Visit for Gathered {
    fn head(&mut self, head: &Head) -> Progress {
        self.status = head.status;
        self.redirect = head.location.clone().filter(|_| (300..400).contains(&head.status));
        self.coding = head.encoding.clone().filter(|coding| !is_plain(coding));
        if self.coding.is_some() { Progress::Done } else { Progress::More }
    }

    fn data(&mut self, bytes: &[u8]) -> Progress {
        self.body.extend_from_slice(bytes);
        if self.body.len() > ANSWER_LIMIT { Progress::Done } else { Progress::More }
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
