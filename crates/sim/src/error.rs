//! What can go wrong outside a request.

use std::io;
use std::net::SocketAddr;

/// Why a simulated server could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// A field of the configuration is wrong.
    #[error("bad simulator configuration: {message}")]
    Config {
        /// Which field, and why.
        message: String,
    },
    /// The fault file is not a JSON list.
    #[error("the fault script is not a JSON list of rules: {message}")]
    Script {
        /// What the JSON parser said.
        message: String,
    },
    /// One fault rule is wrong.
    #[error("fault rule {rule}: {message}")]
    Rule {
        /// Place in the list, from 1.
        rule: usize,
        /// What is wrong with it.
        message: String,
    },
    /// No engine model of that name.
    #[error("no engine model is called `{name}`; known are {known}")]
    UnknownModel {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: String,
    },
    /// The address could not be bound.
    #[error("cannot listen on {address}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// A thread or its runtime could not be started.
    #[error("cannot start the simulator's thread")]
    Thread {
        /// The system's error.
        source: io::Error,
    },
    /// The certificate or its key cannot be used.
    #[error("unusable TLS certificate or key: {message}")]
    Tls {
        /// What is wrong.
        message: String,
    },
}
