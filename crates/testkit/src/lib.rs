//! Test helpers for servebench: scripted replies in the language of the executable cases.
//!
//! A [`Script`] is one server reply: timed writes and how the body ends. [`cases`] finds scripts in
//! Markdown, each with the record that a client must report. The crate does no I/O: a decoder test feeds
//! the writes to a decoder, a socket test plays them.
//!
//! Invariant: [`Script::recut`] changes neither the bytes nor their order.
//!
//! # Example
//!
//! ```
//! use servebench_testkit::{BodyEnd, Script};
//!
//! let script: Script = r#"
//! 100 T "a"
//! 150 TFIN "length"
//! 150 DONE
//! 160 END
//! "#
//! .parse()?;
//! assert_eq!(script.writes[0].ms, 100);
//! assert!(script.writes[1].bytes.ends_with(b"data: [DONE]\n\n"));
//! assert_eq!(script.end, Some((160, BodyEnd::Proper)));
//! # Ok::<(), servebench_testkit::ScriptError>(())
//! ```

mod case;
mod script;

pub use case::{Case, cases};
pub use script::{BodyEnd, Script, ScriptError, Write};

/// The README's example is compiled and run with the doctests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
