//! A simulated LLM inference server with real wire formats, an engine cost model and faults.
//!
//! A [`Sim`] answers the HTTP endpoints of SGLang and of OpenAI-compatible servers, streamed or
//! not, with the bytes that the real ones would send. Tokens come at fixed times
//! ([`Timing::Canned`]) or as a step-wise [engine model](engine) has them, with batching, queueing,
//! a prefix cache and speculative decoding. [Fault rules](FaultRule) make it fail in the ways that
//! servers fail. It keeps the [true send time](TruthRecord) of every token, so that a client's
//! error can be computed.
//!
//! Invariants: no request makes it panic or leaves it without an answer; time comes from tokio
//! alone, so it runs in virtual time over an in-memory connection; it starts no task and no thread
//! that outlives what it returned.
//!
//! # Example
//!
//! In virtual time, over an in-memory connection:
//!
//! ```
//! use servebench_sim::{Sim, SimConfig, Timing};
//! use std::time::Duration;
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> std::io::Result<()> {
//! let ms = Duration::from_millis;
//! let sim = Sim::new(SimConfig { timing: Timing::canned(ms(250), ms(10)), ..Default::default() });
//! let (mut client, server) = tokio::io::duplex(64 << 10);
//! let body = r#"{"text": "Hello", "sampling_params": {"max_new_tokens": 3}, "stream": true}"#;
//! let head = format!("POST /generate HTTP/1.1\r\ncontent-length: {}\r\n", body.len());
//! let mut reply = String::new();
//! let talk = async {
//!     client.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).await?;
//!     client.read_to_string(&mut reply).await
//! };
//! tokio::join!(sim.serve_connection(server), talk).1?;
//!
//! assert!(reply.contains(r#""completion_tokens":3"#) && reply.contains("data: [DONE]"));
//! let truth = &sim.truth()[0];
//! let ttft = truth.first_token_ns().map(|at| at - truth.received_ns);
//! assert_eq!(ttft, Some(250_000_000));
//! # Ok(())
//! # }
//! ```
//!
//! [`Sim::spawn_in_thread`] serves on a loopback port instead; the `sim-server` program does so as
//! a process.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod clock;
mod config;
pub mod engine;
mod error;
mod faults;
mod form;
mod front;
#[doc(hidden)]
pub mod fuzzing;
mod link;
mod live;
mod order;
mod pace;
mod picture;
mod profile;
mod random;
mod request;
mod server;
mod state;
mod stream;
mod sync;
mod text;
#[cfg(feature = "tls")]
mod tls;
mod trace;
mod truth;
mod wire;
mod work;

pub use config::{PromptCount, ReasoningField, SimConfig, TextStyle, Timing};
pub use engine::{CostModel, Speculative};
pub use error::SimError;
pub use faults::{Action, After, FaultRule, When, parse_faults};
pub use server::{Sim, SimHandle};
pub use state::Stats;
#[cfg(feature = "tls")]
pub use tls::{TlsAcceptor, tls_acceptor};
pub use truth::{Sent, TruthRecord};
