//! The four ways in which vLLM hashes a block.

use crate::pickle;
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::str::FromStr;
use twox_hash::XxHash3_128;

/// A name that is none of the algorithms'.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HashError {
    /// Nobody knows the algorithm.
    #[error("`{0}` is none of sha256, sha256_cbor, xxhash, xxhash_cbor")]
    Algorithm(String),
}

/// What is hashed: Python's `(parent, tokens, None)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// The parent's digest.
    pub parent: &'a [u8],
    /// The block's token ids.
    pub tokens: &'a [u32],
}

/// A serialization and the hash over its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// SHA-256 over Python's pickle, protocol 5.
    Sha256,
    /// SHA-256 over canonical CBOR.
    Sha256Cbor,
    /// XXH3 with 128 bits over Python's pickle, protocol 5.
    Xxhash,
    /// XXH3 with 128 bits over canonical CBOR.
    XxhashCbor,
}

impl Algorithm {
    /// All, in vLLM's order.
    pub const ALL: [Self; 4] = [Self::Sha256, Self::Sha256Cbor, Self::Xxhash, Self::XxhashCbor];

    /// The name that vLLM gives it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha256Cbor => "sha256_cbor",
            Self::Xxhash => "xxhash",
            Self::XxhashCbor => "xxhash_cbor",
        }
    }

    /// The digest of a block.
    pub fn digest(self, item: &Item<'_>) -> Digest {
        self.digest_with(item, &mut Vec::new())
    }

    /// As [`Algorithm::digest`], with `scratch` for the serialized bytes: no allocation when it is
    /// large enough.
    pub fn digest_with(self, item: &Item<'_>, scratch: &mut Vec<u8>) -> Digest {
        scratch.clear();
        if self.uses_cbor() {
            cbor(&(Bytes(item.parent), item.tokens, None::<()>), scratch);
        } else {
            pickle::item(item, scratch);
        }
        self.hash(scratch)
    }

    /// The digest of a text alone, as the first parent's is made.
    pub fn digest_of_text(self, text: &str) -> Digest {
        let mut bytes = Vec::new();
        if self.uses_cbor() {
            cbor(text, &mut bytes);
        } else {
            pickle::text(text, &mut bytes);
        }
        self.hash(&bytes)
    }

    const fn uses_cbor(self) -> bool {
        matches!(self, Self::Sha256Cbor | Self::XxhashCbor)
    }

    fn hash(self, bytes: &[u8]) -> Digest {
        match self {
            Self::Sha256 | Self::Sha256Cbor => Digest::new(&Sha256::digest(bytes)),
            Self::Xxhash | Self::XxhashCbor => {
                Digest::new(&XxHash3_128::oneshot(bytes).to_be_bytes())
            }
        }
    }
}

impl FromStr for Algorithm {
    type Err = HashError;

    fn from_str(text: &str) -> Result<Self, HashError> {
        let found = Self::ALL.into_iter().find(|algorithm| algorithm.name() == text);
        found.ok_or_else(|| HashError::Algorithm(text.to_owned()))
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Up to 32 bytes. Displayed as hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    bytes: [u8; 32],
    length: usize,
}

impl Digest {
    /// The first 32 of these bytes.
    pub fn new(bytes: &[u8]) -> Self {
        let mut all = [0; 32];
        let length = bytes.len().min(32);
        all[..length].copy_from_slice(&bytes[..length]);
        Self { bytes: all, length }
    }

    /// The bytes, the most significant of a number first.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Appends canonical CBOR: of bytes, texts, numbers, null and lists the shortest form is the only one.
fn cbor<T: Serialize + ?Sized>(value: &T, bytes: &mut Vec<u8>) {
    let written = ciborium::into_writer(value, bytes);
    debug_assert!(written.is_ok(), "all lengths are known, and a vector takes all bytes");
}

/// Bytes, where a slice would become a list.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}
