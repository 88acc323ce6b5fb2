//! Flags of the two hash benchmarks.

use clap::Args;
use servebench_hashes::Algorithm;

/// Every flag of vLLM's `benchmark_hash.py`: what may be abbreviated.
pub const HASH_FLAGS: &[&str] = &["--help", "--iterations", "--seed"];

/// Every flag of vLLM's `benchmark_prefix_block_hash.py`: what may be abbreviated.
pub const BLOCK_HASH_FLAGS: &[&str] = &[
    "--algorithms",
    "--block-size",
    "--help",
    "--num-blocks",
    "--seed",
    "--trials",
    "--vocab-size",
];

/// Flags of `hash`.
#[derive(Args, Clone, Debug)]
pub struct HashArgs {
    /// Calls measured of each hash function
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub iterations: u32,

    /// Seed of the payload
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u32,
}

/// Flags of `prefix-block-hash`.
#[derive(Args, Clone, Debug)]
pub struct PrefixBlockHashArgs {
    /// Blocks in the chain
    #[arg(long, value_name = "N", default_value_t = 10_000,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub num_blocks: u32,

    /// Tokens in a block
    #[arg(long, value_name = "N", default_value_t = 32,
        value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub block_size: u32,

    /// Token ids lie below this
    #[arg(long, value_name = "N", default_value_t = 32_000,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub vocab_size: u32,

    /// Seed of the token ids
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u32,

    /// Times that each chain is hashed
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub trials: u32,

    /// Hash algorithms to measure [default: all four]
    #[arg(long, num_args = 1.., value_name = "NAME",
        value_parser = ["sha256", "sha256_cbor", "xxhash", "xxhash_cbor"])]
    pub algorithms: Vec<String>,
}

impl PrefixBlockHashArgs {
    /// Those that were asked for, in the order given; all of them when none was.
    pub fn algorithms(&self) -> Vec<Algorithm> {
        if self.algorithms.is_empty() {
            return Algorithm::ALL.to_vec();
        }
        self.algorithms.iter().filter_map(|name| name.parse().ok()).collect()
    }
}
