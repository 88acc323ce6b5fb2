//! The command line of `bench-one-batch-server`.

use clap::Parser;
use servebench_cli::one_batch::OneBatchArgs;

/// Sends a whole batch of prompts in one request and shows how fast the server is with it
///
/// Takes the flags of `python -m sglang.bench_one_batch_server`, unique prefixes of them included, and
/// writes its result lines and its report. Lists of batch sizes, input and output lengths make a
/// sweep, in which every case begins with an empty cache. A server is started with --launch, whatever
/// server it is; flags of the server itself go into that command.
#[derive(Parser, Debug)]
#[command(
    name = "bench-one-batch-server",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Args {
    /// All of it.
    #[command(flatten)]
    pub all: OneBatchArgs,
}

const EXAMPLES: &str = "\
Examples:
  # Try it without a server; four cases and a table of them:
  bench-one-batch-server --simulate --batch-size 1 8 --input-len 128 1024 --output-len 32 --show-report

  # The SGLang server on this machine:
  bench-one-batch-server --base-url http://127.0.0.1:30000 --model None --batch-size 32 \\
    --input-len 256 --output-len 32

  # Start a server for the run, and stop it afterwards:
  bench-one-batch-server --launch 'python -m sglang.launch_server --model-path MODEL' \\
    --batch-size 1 16 64 --input-len 1024 --output-len 8 --show-report

  # Recorded prompts whose replies may end early:
  bench-one-batch-server --dataset-name custom --dataset-path chats.jsonl --batch-size 16 \\
    --output-len 512 --disable-ignore-eos --show-report

  # A trace of each case beside its figures:
  bench-one-batch-server --batch-size 8 --profile --profile-by-stage --profile-output-dir /tmp/p

Exit codes: 0 done, 1 bug, 2 usage, 3 bad data or nothing that the server can run, 4 server not
reached or refused, 5 a batch failed, 7 output not written, 130/143 interrupted (the cases that were
done are written).";
