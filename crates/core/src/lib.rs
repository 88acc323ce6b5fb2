//! Vocabulary and contracts of servebench: time, samples, records, backends, random streams.
//!
//! Everything else in the workspace meets through this crate, and this crate knows nobody: it does
//! no I/O, starts no task and reads no clock of its own. Data flows one way through its types:
//!
//! [`Sample`] → [`Request`] (a body, encoded before the clock starts) → [`Backend::send`] →
//! [`Reply`] (stamped chunks) → [`Record`].
//!
//! # Example
//!
//! A reply is filled chunk by chunk and read back exactly:
//!
//! ```
//! use servebench_core::{Reply, Stamp};
//!
//! let mut reply = Reply::default();
//! reply.push_chunk(Stamp::from_millis(100), Some(1), 0, "Hel");
//! reply.push_chunk(Stamp::from_millis(150), Some(2), 0, "lo!");
//! assert_eq!(reply.first_token(), Some(Stamp::from_millis(100)));
//! assert_eq!(reply.last_token(), Some(Stamp::from_millis(150)));
//! assert_eq!(reply.text, "Hello!");
//! ```

mod backend;
mod chunks;
mod conversation;
mod failure;
mod protocol;
pub mod random;
mod record;
mod recording;
mod sample;
mod time;
mod unless;

pub use backend::{Backend, Request};
pub use chunks::{Chunk, Chunks, PackedChunks};
pub use conversation::{Conversation, Session, TurnEnd};
pub use failure::{Failure, FailureKind};
pub use protocol::{Decode, End, Progress, Protocol};
pub use record::{CachedDetails, CountSource, Rare, ReadLag, Record, Reply};
pub use sample::{Audio, Counted, Picture, Pictures, Prompt, Sample};
pub use time::{Clock, Stamp};
pub use unless::unless;
