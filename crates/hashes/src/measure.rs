//! The inputs of vLLM's two hash benchmarks, and how long hashing them takes.

use crate::{Algorithm, Digest, Item};
use servebench_core::random::PythonRandom;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::hint::black_box;

/// Calls before the first one that is measured.
const WARM_UP: u32 = 200;

/// What `benchmark_hash.py` hashes: 32 random bytes and 32 integers from 1 to 1 000 000.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Where a block has its parent's digest.
    pub bytes: Vec<u8>,
    /// Where a block has its tokens.
    pub numbers: Vec<u32>,
}

impl Payload {
    /// As Python draws it after `random.seed(seed)`.
    pub fn new(seed: u32) -> Self {
        let mut draws = PythonRandom::new(seed);
        let bytes = draws.bytes(32);
        Self { bytes, numbers: (0..32).map(|_| 1 + draws.below(1_000_000)).collect() }
    }
}

/// The time of one call. Microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTiming {
    /// The algorithm, or `None` for the hash of Rust's own maps (SipHash-1-3).
    pub algorithm: Option<Algorithm>,
    /// The mean.
    pub mean_us: f64,
    /// The sample's standard deviation; 0 of a single call.
    pub deviation_us: f64,
}

/// Hashes the payload `iterations` times with every algorithm and with Rust's own hash, each call timed
/// by itself, after 200 calls that are not. `now` gives nanoseconds on a clock that never goes back.
pub fn measure_calls(
    payload: &Payload,
    iterations: usize,
    mut now: impl FnMut() -> u64,
) -> Vec<CallTiming> {
    let item = Item { parent: &payload.bytes, tokens: &payload.numbers };
    let mut scratch = Vec::new();
    let ways = Algorithm::ALL.into_iter().map(Some).chain([None]);
    ways.map(|algorithm| {
        let mut call = || match algorithm {
            Some(algorithm) => {
                black_box(algorithm.digest_with(black_box(&item), &mut scratch));
            }
            None => {
                black_box(built_in(black_box(payload)));
            }
        };
        (0..WARM_UP).for_each(|_| call());
        let times: Vec<f64> = (0..iterations)
            .map(|_| {
                let begin = now();
                call();
                now().saturating_sub(begin) as f64 / 1000.0
            })
            .collect();
        let (mean_us, deviation_us) = mean_and_deviation(&times);
        CallTiming { algorithm, mean_us, deviation_us }
    })
    .collect()
}

fn built_in(payload: &Payload) -> u64 {
    let mut hasher = DefaultHasher::new();
    payload.bytes.hash(&mut hasher);
    payload.numbers.hash(&mut hasher);
    hasher.finish()
}

fn mean_and_deviation(times: &[f64]) -> (f64, f64) {
    let count = times.len() as f64;
    if times.is_empty() {
        return (0.0, 0.0);
    }
    let mean = times.iter().sum::<f64>() / count;
    let squares = times.iter().map(|time| (time - mean) * (time - mean)).sum::<f64>();
    (mean, if times.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 })
}

/// The blocks of `benchmark_prefix_block_hash.py`, one after the other: ids uniform below `vocabulary`,
/// as a Python generator with this seed draws them.
///
/// # Panics
///
/// When `vocabulary` is 0.
pub fn blocks(count: usize, size: usize, vocabulary: u32, seed: u32) -> Vec<Vec<u32>> {
    let mut draws = PythonRandom::new(seed);
    (0..count).map(|_| (0..size).map(|_| draws.below(vocabulary)).collect()).collect()
}

/// The parent of a first block: of this text, which vLLM takes from `PYTHONHASHSEED`.
pub fn first_parent(algorithm: Algorithm, seed: &str) -> Digest {
    algorithm.digest_of_text(seed)
}

/// The digest of the last of these blocks, each the parent of the next.
pub fn chain(algorithm: Algorithm, first: Digest, blocks: &[Vec<u32>]) -> Digest {
    let mut scratch = Vec::new();
    blocks.iter().fold(first, |parent, tokens| {
        algorithm.digest_with(&Item { parent: parent.as_bytes(), tokens }, &mut scratch)
    })
}

/// How long a chain took.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockTiming {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The mean of the trials, in seconds.
    pub mean_s: f64,
    /// The fastest trial, in seconds.
    pub best_s: f64,
    /// Tokens hashed in a second of the fastest trial.
    pub tokens_per_s: f64,
    /// The last block's digest.
    pub digest: Digest,
}

/// Hashes the whole chain `trials` times (at least once), after one time that is not measured. `now` as
/// in [`measure_calls`].
pub fn measure_blocks(
    algorithm: Algorithm,
    seed: &str,
    blocks: &[Vec<u32>],
    trials: usize,
    mut now: impl FnMut() -> u64,
) -> BlockTiming {
    let first = first_parent(algorithm, seed);
    let digest = chain(algorithm, first, blocks);
    let times: Vec<f64> = (0..trials.max(1))
        .map(|_| {
            let begin = now();
            black_box(chain(algorithm, black_box(first), black_box(blocks)));
            now().saturating_sub(begin) as f64 / 1e9
        })
        .collect();
    let best_s = times.iter().copied().fold(f64::INFINITY, f64::min);
    let tokens: usize = blocks.iter().map(Vec::len).sum();
    let tokens_per_s = if best_s > 0.0 { tokens as f64 / best_s } else { 0.0 };
    let mean_s = times.iter().sum::<f64>() / times.len() as f64;
    BlockTiming { algorithm, mean_s, best_s, tokens_per_s, digest }
}
