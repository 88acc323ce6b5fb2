//! How fast prefix-cache blocks are hashed: SHA-256 and XXH3 over pickle and CBOR.
//!
//! An inference server with a prefix cache names each block of tokens by a hash of the block's tokens and
//! of its parent's hash. vLLM offers four ways to do so ([`Algorithm`]); this crate computes the digests that
//! vLLM's Python code computes, byte for byte, and measures what they cost here.
//!
//! Nothing reads a clock: who measures hands in one, as a function that gives nanoseconds.
//!
//! # Example
//!
//! ```
//! use servebench_hashes::{Algorithm, Item};
//!
//! let item = Item { parent: &[0; 32], tokens: &[1, 2, 300] };
//! let digest = Algorithm::Sha256Cbor.digest(&item);
//! assert_eq!(digest.as_bytes().len(), 32);
//! // As Python's `pickle.dumps` and `xxhash.xxh3_128_hexdigest` have it.
//! let digest = Algorithm::Xxhash.digest(&item);
//! assert_eq!(digest.to_string(), "1a6562618cde0f4b8879d52255cf5e4d");
//! ```

mod algorithm;
mod measure;
mod pickle;

pub use algorithm::{Algorithm, Digest, HashError, Item};
pub use measure::{
    BlockTiming, CallTiming, Payload, blocks, chain, first_parent, measure_blocks, measure_calls,
};
