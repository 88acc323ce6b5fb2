//! The command line of `bench-serving`.

use clap::Parser;
use servebench_cli::ServingArgs;
use servebench_cli::args::{
    DatasetArgs, LoadArgs, OwnArgs, ProfileArgs, ReportArgs, SamplingArgs, TargetArgs,
};

/// Measures a running LLM inference server: sends requests, reads the token streams, reports TTFT,
/// TPOT, ITL, end-to-end latency, throughput and goodput
///
/// Takes the flags of `python -m sglang.bench_serving`, unique prefixes of them included, and prints
/// its table. The result is appended as one JSON line to a file.
#[derive(Parser, Debug)]
#[command(
    name = "bench-serving",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Args {
    #[command(flatten)]
    target: TargetArgs,
    #[command(flatten)]
    dataset: DatasetArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    sampling: SamplingArgs,
    #[command(flatten)]
    report: ReportArgs,
    #[command(flatten)]
    profile: ProfileArgs,
    #[command(flatten)]
    own: OwnArgs,
}

impl Args {
    /// Whether only the plan is wanted.
    pub fn is_dry_run(&self) -> bool {
        self.own.dry_run
    }
}

const EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-serving --simulate

  # An SGLang server on this machine, 64 requests at a time, exact lengths:
  bench-serving --backend sglang --port 30000 --dataset-name random-ids \\
    --random-input-len 1024 --random-output-len 256 --random-range-ratio 1.0 \\
    --num-prompts 500 --max-concurrency 64

  # A vLLM server's chat endpoint at 8 requests per second, with objectives:
  bench-serving --backend vllm-chat --base-url http://host:8000 --dataset-name sharegpt \\
    --dataset-path sharegpt.json --request-rate 8 --goodput ttft:500 tpot:50

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 objective missed, 7 output not written, 130/143 interrupted.";

impl From<Args> for ServingArgs {
    fn from(args: Args) -> Self {
        let Args { target, dataset, load, sampling, report, profile, own } = args;
        Self { target, dataset, load, sampling, report, profile, own }
    }
}
