//! The command line of `bench-vllm startup`.

use clap::Parser;
use servebench_cli::vllm::StartupArgs;

/// Starts a server again and again, and reports how long it takes until it is ready
///
/// Takes the flags of `vllm bench startup`, and prints its blocks. Options of the engine are handed to `vllm
/// serve`; --serve-cmd gives another command. A start is over when GET /health answers 200: in these figures
/// is the server's front end, which that tool does not start. For a cold start the caches of vLLM,
/// TorchInductor and Triton are in a folder of its own, which is deleted afterwards. Compilation times are
/// those of the server's log.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm startup",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct StartupCommand {
    #[command(flatten)]
    pub(crate) args: StartupArgs,
}

const EXAMPLES: &str = "\
Examples:
  # vLLM with these options of its engine, on a free port:
  bench-vllm startup --model NAME --tensor-parallel-size 2 --output-json startup.json

  # Another server, twice with what it finds in its caches:
  bench-vllm startup --num-iters-cold 0 --num-iters-warm 2 \\
    --serve-cmd 'python -m sglang.launch_server --model-path NAME --port 30000'

Exit codes: 0 done, 1 bug, 2 usage, 4 the server did not start, 7 output not written,
130/143 interrupted.";
