//! HTTP transport for LLM load generation: warm connections, read stamps, one retry rule.
//!
//! [`HttpBackend`] carries any [`Protocol`](servebench_core::Protocol) over HTTP, in
//! the clear or under TLS. Reads are stamped at the socket, below HTTP and TLS, and the connection
//! is driven by the request that uses it: nothing stands between two reads but stamp, decode,
//! push. [`Caller`] makes the single calls around a run. The connector is the caller's, so that the
//! whole stack also runs over an in-memory connection in virtual time. [`TcpConnect`] opens TCP, TLS
//! and Unix sockets, through a proxy where there is one; [`Balanced`] deals requests to several servers.
//! HTTP/2 is spoken where it is asked for, [`Limits`] says how long anything may take, and [`Secrets`]
//! keeps keys out of messages.
//!
//! # Features
//!
//! * `tls` (default): HTTPS through rustls with ring.
//!
//! # Example
//!
//! A base URL is parsed once and used for every call:
//!
//! ```
//! use servebench_http::{BaseUrl, Target};
//!
//! let base: BaseUrl = "http://127.0.0.1:30000/".parse()?;
//! let target = Target::new(base).with_header("Authorization", "Bearer key")?;
//! assert_eq!(target.base().url("/generate"), "http://127.0.0.1:30000/generate");
//! assert!(!format!("{target:?}").contains("key"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod balance;
mod base_url;
mod call;
mod client;
mod coding;
mod connect;
#[doc(hidden)]
pub mod fuzzing;
mod http2;
mod hyper1;
#[cfg(target_os = "linux")]
mod kernel;
mod lean;
mod limits;
mod meter;
mod observe;
mod pool;
mod proxy;
mod reading;
mod secrets;
mod target;
#[cfg(feature = "tls")]
mod tls;
mod tunnel;
mod wire;

pub use balance::{Balance, Balanced, Balancer};
pub use base_url::{BaseUrl, BaseUrlError};
pub use call::{Answer, CallError, Caller};
pub use client::HttpBackend;
pub use connect::{
    Connect, FnConnect, Identity, Opened, Spoken, Stamps, Stream, TcpConnect, TlsOptions, Way,
};
pub use http::Method;
pub use limits::Limits;
pub use meter::Tap;
pub use observe::{Event, Observe, Replay};
pub use proxy::{Proxies, Proxy, ProxyError};
pub use reading::Receipt;
pub use secrets::Secrets;
pub use target::{HeaderError, Target};
pub use wire::{Ended, Head, HttpReader};
