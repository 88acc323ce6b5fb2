//! Why a control call failed.

use servebench_http::{Answer, CallError};
use std::time::Duration;

/// Why a control call failed. Messages say what was called and what came back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No answer came.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server never became ready.
    #[error("the server at {url} was not ready within {limit:?}; last answer: {last}")]
    NotReady {
        /// What was polled.
        url: String,
        /// How long.
        limit: Duration,
        /// The last answer or error.
        last: String,
    },
    /// The server asks for a key.
    #[error("{url} answered {status}: {body}")]
    Unauthorized {
        /// What was called.
        url: String,
        /// 401 or 403.
        status: u16,
        /// What the server says.
        body: String,
    },
    /// The server does not offer the operation.
    #[error("{operation}: {url} answered {status}: {body}; {hint}")]
    Unsupported {
        /// What was wanted.
        operation: &'static str,
        /// What was called.
        url: String,
        /// 404, 405 or 501.
        status: u16,
        /// What the server says.
        body: String,
        /// What would offer it.
        hint: &'static str,
    },
    /// The server refused.
    #[error("{operation}: {url} answered {status}: {body}")]
    Refused {
        /// What was wanted.
        operation: &'static str,
        /// What was called.
        url: String,
        /// HTTP status.
        status: u16,
        /// What the server says.
        body: String,
    },
    /// The answer is not what the endpoint should give.
    #[error("{url}: {reason}")]
    Unexpected {
        /// What was called.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl ControlError {
    /// The error for an answer that is no success.
    pub(crate) fn from_answer(
        operation: &'static str,
        url: String,
        answer: &Answer,
        hint: &'static str,
    ) -> Self {
        let (status, body) = (answer.status, answer.excerpt());
        match status {
            401 | 403 => Self::Unauthorized { url, status, body },
            404 | 405 | 501 => Self::Unsupported { operation, url, status, body, hint },
            _ => Self::Refused { operation, url, status, body },
        }
    }
}
