//! Why a recording cannot be written or read.

use servebench_journal::JournalError;

/// What can go wrong with a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file is no log, or one that cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A frame is whole, but not what a recording holds.
    #[error("frame {frame} of the recording: {error}")]
    Frame {
        /// Its place behind the header, from 1.
        frame: u64,
        /// What is wrong with it.
        error: Malformed,
    },
    /// The thread that writes could not be started, or has panicked.
    #[error("the recording's writer: {0}")]
    Writer(String),
}

/// Bytes that are no part of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its bytes make no sense")]
pub struct Malformed;
