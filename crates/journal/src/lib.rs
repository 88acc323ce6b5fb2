//! Append-only logs of checksummed frames, readable up to the place where they were cut.
//!
//! A log is a [`Header`] and frames of any bytes behind it. What is in a frame, and what a kind of log
//! promises, is its user's business. The invariant: a reader gives the frames that were written, from the
//! first on and in order, up to the first that is incomplete or damaged, and says what came after
//! ([`Ending`]). It never gives a frame that was not written.
//!
//! Nothing here knows a file system: a log is written to any `io::Write` and read from any `io::Read`.
//!
//! [`records`] is the kind of log that a benchmark writes of its requests.
//!
//! # Example
//!
//! ```
//! use servebench_journal::{Ending, Header, Reader, Writer};
//!
//! let mut file = Vec::new();
//! let mut writer = Writer::create(&mut file, &Header::new("example", 1))?;
//! writer.push(b"one")?;
//! writer.push(b"two")?;
//!
//! // The machine stops amid the second frame.
//! file.truncate(file.len() - 1);
//!
//! let mut reader = Reader::open(file.as_slice())?;
//! assert_eq!(reader.next_frame()?, Some(&b"one"[..]));
//! assert_eq!(reader.next_frame()?, None);
//! assert!(matches!(reader.ending(), Some(Ending::Torn(loss)) if loss.bytes == 14));
//! # Ok::<(), servebench_journal::JournalError>(())
//! ```

mod error;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod reader;
pub mod records;
mod writer;

pub use error::JournalError;
pub use format::{FORMAT_VERSION, Header};
pub use reader::{Ending, Loss, Reader};
pub use writer::Writer;
