//! LLM serving protocols without I/O: samples to request bodies, response bytes to token events.
//!
//! A [`BackendKind`] names an endpoint; with [`GenerateOptions`] it gives a
//! [`Protocol`](servebench_core::Protocol), which encodes samples and decodes replies. Nothing here
//! opens a socket or reads a clock, so a decoder can be fed from a capture, a test or any transport.
//!
//! What a reply counts as, in short: a chunk is *token-bearing* when it holds text, reasoning or a tool
//! call, or when the server's cumulative count rises (on the native route: only then). An error object
//! in any shape, an aborted request, a body that ends early and a reply without a token are failures,
//! with all that came before them kept.
//!
//! Invariant: how a body was cut into pieces changes stamps only, no bytes panic, and after
//! [`Progress::Done`](servebench_core::Progress) nothing changes a reply any more.
//!
//! # Example
//!
//! ```
//! use servebench_backends::{BackendKind, GenerateOptions};
//! use servebench_core::{End, Progress, Reply, Request, Sample, Stamp};
//!
//! let options = GenerateOptions { model: "m".to_owned(), ..GenerateOptions::default() };
//! let protocol = "vllm".parse::<BackendKind>()?.protocol(options);
//! let sample = Sample { prompt: "Hello".into(), output_len: 2, ..Sample::default() };
//! let body = protocol.encode(&sample, None);
//!
//! let mut decoder = protocol.decoder(&Request { body, output_len: 2, ..Request::default() });
//! let mut reply = Reply::default();
//! for (ms, piece) in [
//!     (40, "data: {\"choices\":[{\"index\":0,\"text\":\" you\"}]}\n\n"),
//!     (65, "data: {\"choices\":[{\"index\":0,\"text\":\"!\",\"finish_reason\":\"length\"}]}\n\n"),
//!     (66, "data: [DONE]\n\n"),
//! ] {
//!     if decoder.feed(Stamp::from_millis(ms), piece.as_bytes(), &mut reply) == Progress::Done {
//!         break;
//!     }
//! }
//! decoder.end(Stamp::from_millis(66), End::Complete, &mut reply);
//!
//! assert_eq!(reply.text, " you!");
//! assert_eq!(reply.first_token(), Some(Stamp::from_millis(40)));
//! assert_eq!(reply.failure, None);
//! # Ok::<(), servebench_backends::UnknownBackend>(())
//! ```

#[cfg(test)]
mod agreement;
mod answer;
mod asked;
pub mod batch;
mod body;
mod cached;
mod choices;
mod decoder;
mod embeddings;
#[doc(hidden)]
pub mod fuzzing;
mod json;
mod native;
mod openai;
mod options;
mod registry;
mod server_error;
pub mod sse;
mod transcript;
mod triton;
mod truss;
pub mod vllm;

pub use asked::without_prompt;
pub use options::GenerateOptions;
pub use registry::{BackendInfo, BackendKind, Family, ItlRule, NEVER_BUILT, UnknownBackend, names};

/// The README's example is compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
