//! The command line of `bench-vllm long-document-qa`.

use clap::Parser;
use servebench_cli::vllm::LongDocumentQaArgs;

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
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct LongDocumentQaCommand {
    #[command(flatten)]
    pub(crate) args: LongDocumentQaArgs,
}

const EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm long-document-qa --simulate --document-length 500

  # A vLLM server on this machine, 16 documents of 8000 words, each twice in a row:
  bench-vllm long-document-qa --num-documents 16 --document-length 8000 --repeat-mode interleave

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 --fail-if-client-bound, 7 output not written, 130/143 interrupted.";
