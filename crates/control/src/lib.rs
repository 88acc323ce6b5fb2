//! Control calls to inference servers: readiness, models, cache flush, profiler, server info.
//!
//! [`Control`] makes the calls around a run, with the same base URL, headers and authentication
//! as the run itself. What a server does not offer is an error value, never a silent success; every
//! wait has a limit.
//!
//! # Example
//!
//! The answers are read leniently; this is the accept length of speculative decoding in a server's
//! own report:
//!
//! ```
//! use servebench_control::accept_length;
//!
//! let info = serde_json::json!({"internal_states": [{"avg_spec_accept_length": 2.5}]});
//! assert_eq!(accept_length(&info), Some(2.5));
//! assert_eq!(accept_length(&serde_json::json!({"decode": [{"internal_states": []}]})), None);
//! ```

mod client;
mod error;
mod info;
mod profile;

pub use client::{Control, Family, Model};
pub use error::ControlError;
pub use info::accept_length;
pub use profile::ProfileRequest;
