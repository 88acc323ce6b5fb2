//! Tokenizers and chat templates for LLM benchmarks, by hub name or local path.
//!
//! A [`Tokenizer`] counts, encodes and decodes as the fast tokenizers of the Python tools do, so
//! that counts made here are the counts made there. It is found by [`Tokenizer::load`]: a folder or
//! a `tokenizer.json` on disk, else a model on the Hugging Face hub, through the cache that Python
//! uses too ([`Hub`]). A [`ChatTemplate`] turns messages into the text a server would see.
//!
//! Invariants: nothing here reads the environment ([`HubConfig::from_vars`] takes a lookup
//! function), no template runs forever, and no file from outside makes it panic.
//!
//! # Example
//!
//! ```
//! use servebench_tokens::Tokenizer;
//!
//! let tokenizer = Tokenizer::byte_level();
//! let ids = tokenizer.encode("hé", false)?;
//! assert_eq!(ids, [0x68, 0xc3, 0xa9]);
//! assert_eq!(tokenizer.decode(&ids, false)?, "hé");
//! # Ok::<(), servebench_tokens::TokensError>(())
//! ```

mod bytes;
mod config;
mod error;
mod file;
#[doc(hidden)]
pub mod fuzzing;
mod hub;
mod source;
mod template;
mod tokenizer;

pub use error::TokensError;
pub use hub::{Downloaded, Hub, HubConfig, RepoKind, files_under};
pub use template::{ChatTemplate, without_leading};
pub use tokenizer::Tokenizer;
