//! Why a log cannot be written or read.

use std::io;

/// What can go wrong with a log. That one was cut or damaged behind its header is no error but an
/// [`Ending`](crate::Ending).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Reading or writing failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An earlier write failed, perhaps amid a frame: nothing can be appended any more.
    #[error("an earlier write to the log failed")]
    Broken,
    /// A payload is larger than a frame can be.
    #[error("a frame of {0} bytes is too large: 4294967295 are the most")]
    TooLarge(usize),
    /// The bytes are something else.
    #[error("this is not a log of servebench")]
    Foreign,
    /// The log was written by a newer program.
    #[error("the log has format version {0}, and this program reads versions up to {known}", known = crate::FORMAT_VERSION)]
    Version(u32),
    /// The log was cut or damaged before its first frame.
    #[error("the log's header is incomplete or damaged")]
    Header,
    /// A frame is whole and yet not what its kind of log consists of.
    #[error("the frame at byte {0} of the log is not understood")]
    Content(u64),
    /// A log of one kind was to be read as one of another.
    #[error("this is a log of kind `{found}`, not `{wanted}`")]
    Kind {
        /// Kind of the log.
        found: String,
        /// Kind that was wanted.
        wanted: String,
    },
    /// The kind's own version is newer than what its reader knows.
    #[error(
        "this log of kind `{kind}` has version {found}, and this program reads versions up to {known}"
    )]
    KindVersion {
        /// Kind of the log.
        kind: String,
        /// Its version.
        found: u32,
        /// The newest version known.
        known: u32,
    },
}
