//! The command lines of `bench-vllm hash` and `bench-vllm prefix-block-hash`.

use clap::Parser;
use servebench_cli::hash::{HashArgs, PrefixBlockHashArgs};

/// Times the hash functions of a prefix cache on one block: sha256, sha256_cbor, xxhash, xxhash_cbor and
/// Python's built-in hash
///
/// Takes the flags of vLLM's `benchmark_hash.py` and prints its table. No server, no engine.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm hash",
    version,
    after_help = HASH_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct HashCommand {
    #[command(flatten)]
    pub(crate) args: HashArgs,
}

const HASH_EXAMPLES: &str = "\
Examples:
  bench-vllm hash
  bench-vllm hash --iterations 100000 --seed 7";

/// Times whole chains of block hashes, each block's hash over its parent's
///
/// Takes the flags of vLLM's `benchmark_prefix_block_hash.py` and prints its lines: mean and best time of
/// a chain, and tokens per second. No server, no engine.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm prefix-block-hash",
    version,
    after_help = BLOCK_HASH_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct PrefixBlockHashCommand {
    #[command(flatten)]
    pub(crate) args: PrefixBlockHashArgs,
}

const BLOCK_HASH_EXAMPLES: &str = "\
Examples:
  bench-vllm prefix-block-hash
  bench-vllm prefix-block-hash --num-blocks 20000 --block-size 16 --algorithms sha256 xxhash";
