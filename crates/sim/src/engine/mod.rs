//! A step-wise model of an inference engine: continuous batching with chunked prefill, a limited
//! KV memory with a FIFO queue, a prefix cache and speculative decoding.
//!
//! Pure: no clock, no runtime. [`Engine::step`] does the work of one step and returns how long the
//! cost model says it takes; [`Timeline`] places the steps on a time axis, driven only by the
//! times its callers bring.
//!
//! What the model leaves out: outputs do not enter the prefix cache, memory is reserved for a
//! request's whole output when it is admitted (so nothing is ever preempted), and every cached
//! token is found in device memory.

mod cost;
mod prefix;
mod scheduler;
mod timeline;

pub use cost::{CostModel, Speculative};
pub use scheduler::{Advance, Engine, EngineTotals, Job, JobId, StepReport, TooLarge};
pub use timeline::{Progress, StepSpan, Timeline};

/// Hashes of a prompt's full blocks, each chained to the one before it, as the prefix cache wants
/// them. `bytes_per_block` of 0 makes none.
pub fn block_hashes(prompt: &[u8], bytes_per_block: usize) -> Vec<u64> {
    const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const FNV_PRIME: u64 = 0x0100_0000_01b3;
    if bytes_per_block == 0 {
        return Vec::new();
    }
    let mut hash = FNV_OFFSET;
    prompt
        .chunks_exact(bytes_per_block)
        .map(|block| {
            for byte in block {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME);
            }
            hash
        })
        .collect()
}
