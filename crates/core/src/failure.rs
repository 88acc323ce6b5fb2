//! Why a request failed. A failed request is data; a failed run is an error.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The kinds of failure that results count apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// No connection could be made (refused, unreachable, DNS, TLS, out of descriptors).
    Connect,
    /// The server was silent for longer than allowed, or the whole request took too long.
    Timeout,
    /// The server answered with a status other than 200.
    Status,
    /// The server reported an error inside its reply.
    Server,
    /// The server aborted the request (finish reason `abort`).
    Aborted,
    /// The reply could not be understood.
    Protocol,
    /// The connection was reset or broke while the reply was read.
    Reset,
    /// The reply ended before it was complete.
    Truncated,
    /// The reply was complete and held not one token.
    Empty,
    /// The run was interrupted while the request was under way.
    Cancelled,
    /// The client itself failed.
    Client,
}

impl FailureKind {
    /// The name used in results, as in `failures: {"truncated": 2}`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Status => "status",
            Self::Server => "server",
            Self::Aborted => "aborted",
            Self::Protocol => "protocol",
            Self::Reset => "reset",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
            Self::Cancelled => "cancelled",
            Self::Client => "client",
        }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A failure and what was said about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What kind of failure it is.
    pub kind: FailureKind,
    /// The server's or the system's own words, cut to a readable length.
    pub detail: Box<str>,
}

impl Failure {
    /// Longest detail kept, in bytes: enough for a server's message, not for its stack dump.
    pub const DETAIL_LIMIT: usize = 2048;

    /// A failure with its detail cut to [`Self::DETAIL_LIMIT`] bytes.
    pub fn new(kind: FailureKind, detail: impl AsRef<str>) -> Self {
        let detail = detail.as_ref();
        let end = detail.floor_char_boundary(Self::DETAIL_LIMIT);
        let mut kept = detail.get(..end).unwrap_or_default().to_owned();
        if end < detail.len() {
            kept.push('…');
        }
        Self { kind, detail: kept.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Some words begin with the kind already, since they also stand alone in results.
        if self.detail.starts_with(self.kind.name()) {
            return f.write_str(&self.detail);
        }
        write!(f, "{}: {}", self.kind, self.detail)
    }
}
