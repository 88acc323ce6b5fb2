//! The command lines of `bench-vllm long-document-qa`, `prefix-caching` and `prioritization`.

use clap::Parser;
use servebench_cli::vllm::{LongDocumentQaArgs, PrefixCachingArgs, PrioritizationArgs};

/// Sends the same long prompts again and again to a running server, and reports how long all take
///
/// Takes the flags of vLLM's `benchmark_long_document_qa_throughput.py` that make sense over HTTP, and
/// prints its lines. First come as many other documents of the same length, then the documents, all at
/// once: a server with a prefix cache reads each of them only once, if it has the room. That script runs
/// the engine in its own process: here the server's front end is in the figures, and the result says so.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm long-document-qa",
    version,
    after_help = DOCUMENT_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct LongDocumentQaCommand {
    #[command(flatten)]
    pub(crate) args: LongDocumentQaArgs,
}

const DOCUMENT_EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm long-document-qa --simulate --document-length 500

  # A vLLM server on this machine, 16 documents of 8000 words, each twice in a row:
  bench-vllm long-document-qa --num-documents 16 --document-length 8000 --repeat-mode interleave

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 --fail-if-client-bound, 7 output not written, 8 hung,
130/143 interrupted.";

/// Sends prompts that share a beginning or come again to a running server, and reports how long all take
/// and what of them was in the server's cache
///
/// Takes the flags of vLLM's `benchmark_prefix_caching.py` that make sense over HTTP, and prints its lines;
/// `--sort` works. All requests are sent at once, and nothing before them. Latencies of the requests that
/// send a prompt first and of those that send it again come beside each other, and the share of prompt
/// tokens that the server found in its cache, if it tells. That script runs the engine in its own process:
/// here the server's front end is in the figures, and the result says so.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm prefix-caching",
    version,
    after_help = PREFIX_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct PrefixCachingCommand {
    #[command(flatten)]
    pub(crate) args: PrefixCachingArgs,
}

const PREFIX_EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm prefix-caching --simulate --num-prompts 20 --repeat-count 3 --input-length-range 64:128

  # A vLLM server on this machine, 100 prompts that share their first 512 tokens, each sent 5 times:
  bench-vllm prefix-caching --num-prompts 100 --repeat-count 5 --input-length-range 600:1000 \\
    --prefix-len 512 --output-json result.json

  # ShareGPT conversations of 128 to 256 tokens:
  bench-vllm prefix-caching --dataset-path sharegpt.json --num-prompts 20 --repeat-count 5 \\
    --input-length-range 128:256

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 --fail-if-client-bound, 7 output not written, 8 hung,
130/143 interrupted.";

/// Sends requests of two priorities to a running server, all at once, and reports how fast they were and
/// what each priority waited
///
/// Takes the flags of vLLM's `benchmark_prioritization.py` that make sense over HTTP, and prints its line.
/// Each request has priority 0 or 1 with the same probability, in the field `priority` of its body; in vLLM
/// the lower number goes first. The server must schedule by priority (`vllm serve MODEL
/// --scheduling-policy priority`); another one refuses such requests or does not heed the field. That script
/// runs the engine in its own process: here the server's front end is in the figures, and the result says so.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm prioritization",
    version,
    after_help = PRIORITY_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct PrioritizationCommand {
    #[command(flatten)]
    pub(crate) args: PrioritizationArgs,
}

const PRIORITY_EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm prioritization --simulate --input-len 64 --output-len 16

  # A vLLM server on this machine that schedules by priority:
  bench-vllm prioritization --input-len 128 --output-len 64 --num-prompts 400 --output-json result.json

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 --fail-if-client-bound, 7 output not written, 8 hung,
130/143 interrupted.";
