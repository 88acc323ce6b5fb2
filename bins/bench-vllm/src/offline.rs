//! The command lines of `bench-vllm throughput` and `bench-vllm latency`.

use clap::Parser;
use servebench_cli::vllm::{LatencyArgs, ThroughputArgs};

/// Sends all requests at once to a running server, and reports requests and tokens per second
///
/// Takes the flags of `vllm bench throughput` that make sense over HTTP, and prints its lines. That tool
/// runs the engine in its own process: here the server's front end is in the figures, and the result says
/// so. Options of the engine go to the server.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm throughput",
    version,
    after_help = THROUGHPUT_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ThroughputCommand {
    #[command(flatten)]
    pub(crate) args: ThroughputArgs,
}

const THROUGHPUT_EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm throughput --simulate

  # A vLLM server on this machine, 1000 random prompts:
  bench-vllm throughput --model NAME --input-len 512 --output-len 128

  # ShareGPT conversations through the chat endpoint, result kept:
  bench-vllm throughput --backend vllm-chat --dataset-path sharegpt.json --output-json result.json

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 --fail-if-client-bound, 7 output not written, 8 hung,
130/143 interrupted.";

/// Sends whole batches to a running server, one after the other, and reports how long each takes
///
/// Takes the flags of `vllm bench latency` that make sense over HTTP, and prints its lines. A batch is one
/// request with a list of prompts of token ids, each drawn anew, so that no prefix cache shortens it. That
/// tool runs the engine in its own process: here the server's front end is in the figures, and the result
/// says so. Options of the engine go to the server.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm latency",
    version,
    after_help = LATENCY_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct LatencyCommand {
    #[command(flatten)]
    pub(crate) args: LatencyArgs,
}

const LATENCY_EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm latency --simulate --num-iters 5

  # A vLLM server on this machine, batches of 32:
  bench-vllm latency --input-len 512 --output-len 64 --batch-size 32 --output-json result.json

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few batches succeeded, 6 --fail-if-client-bound, 7 output not written, 8 hung,
130/143 interrupted.";
