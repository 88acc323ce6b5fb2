//! The bytes of a log: its first ones, its header, the head of a frame.

use crate::JournalError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the arrangement of bytes that is written; the only one so far.
pub const FORMAT_VERSION: u32 = 1;

/// The first bytes of each log: no text, and not the same after line ends were "converted".
pub(crate) const MAGIC: [u8; 8] = *b"\x89SBJ\r\n\x1a\n";

/// Length of the magic and the version.
pub(crate) const PREFIX: usize = MAGIC.len() + 4;

/// What a log is, told by its first frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// What kind of frames follow, as in `records`.
    pub kind: String,
    /// Version of what is in the frames of this kind.
    pub version: u32,
    /// Whatever is known when the log is begun.
    #[serde(default)]
    pub metadata: Value,
}

impl Header {
    /// A header without metadata.
    pub fn new(kind: impl Into<String>, version: u32) -> Self {
        Self { kind: kind.into(), version, metadata: Value::Null }
    }

    /// Checks that a reader of `kind` that knows versions up to `known` can go on.
    ///
    /// # Errors
    ///
    /// [`JournalError::Kind`] or [`JournalError::KindVersion`].
    pub fn expect(&self, kind: &str, known: u32) -> Result<(), JournalError> {
        if self.kind != kind {
            return Err(JournalError::Kind { found: self.kind.clone(), wanted: kind.into() });
        }
        if self.version > known {
            let (kind, found) = (self.kind.clone(), self.version);
            return Err(JournalError::KindVersion { kind, found, known });
        }
        Ok(())
    }
}

/// The head of a frame: how long its payload is and what it sums up to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) length: u32,
    pub(crate) checksum: u32,
}

impl Head {
    /// Length of a head in bytes.
    pub(crate) const SIZE: usize = 12;

    pub(crate) fn of(payload: &[u8]) -> Result<Self, JournalError> {
        let length = u32::try_from(payload.len());
        let length = length.map_err(|_| JournalError::TooLarge(payload.len()))?;
        Ok(Self { length, checksum: crc32c::crc32c(payload) })
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];
        bytes[..4].copy_from_slice(&self.length.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.checksum.to_le_bytes());
        // A sum of its own, so that a damaged length does not pass for a log that was cut.
        let own = crc32c::crc32c(&bytes[..8]);
        bytes[8..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// `None` when the bytes are damaged.
    pub(crate) fn from_bytes(bytes: [u8; Self::SIZE]) -> Option<Self> {
        let number = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let whole = number(8) == crc32c::crc32c(&bytes[..8]);
        whole.then(|| Self { length: number(0), checksum: number(4) })
    }
}
