//! The command lines of `bench-vllm multi-turn` and `bench-vllm convert-sharegpt`.

use clap::Parser;
use servebench_cli::vllm::{ConvertShareGptArgs, MultiTurnArgs};

/// Has conversations with a running server: each turn goes out after the reply to the one before it
///
/// Takes the flags of vLLM's `benchmark_serving_multi_turn.py`, short ones and abbreviations included, and
/// prints its tables, and one of the latencies turn by turn. Each client sends one request at a time and goes
/// round its conversations. A file of conversations or the configuration of synthetic ones says what is said;
/// the server's own answers are what the next turn repeats.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm multi-turn",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct MultiTurnCommand {
    #[command(flatten)]
    pub(crate) args: MultiTurnArgs,
}

const EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm multi-turn --simulate --num-clients 4

  # A vLLM server on this machine, 8 clients with 4 conversations each, figures of each request kept:
  bench-vllm multi-turn -m NAME -i generate_multi_turn.json -p 8 -k 32 --stats-json-output stats.json

  # As much load from the first to the last request as the clients can make:
  bench-vllm multi-turn -m NAME -i talks.json -p 8 --warmup-step --early-stop

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 --verify-output or --fail-if-client-bound, 7 output not written,
8 hung, 130/143 interrupted.";

/// Writes the conversations of a ShareGPT file in the form that `multi-turn` reads
///
/// Takes the arguments of vLLM's `convert_sharegpt_to_openai.py`. Parts of conversations are put together,
/// speakers must take turns, and messages must be ASCII, which English mostly is; that script keeps those
/// alone that are not.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm convert-sharegpt",
    version,
    after_help = CONVERT_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ConvertShareGptCommand {
    #[command(flatten)]
    pub(crate) args: ConvertShareGptArgs,
}

const CONVERT_EXAMPLES: &str = "\
Examples:
  bench-vllm convert-sharegpt sharegpt.json talks.json --max-items 128 --min-turns 6

Exit codes: 0 done, 1 bug, 2 usage, 3 bad data, 7 output not written.";
