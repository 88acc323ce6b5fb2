//! The command line of `bench-vllm serve`.

use clap::Parser;
use servebench_cli::args::{OwnArgs, RecordArgs};
use servebench_cli::vllm::VllmServeArgs;
use servebench_cli::vllm::args::{
    ContentArgs, TransportArgs, VllmDatasetArgs, VllmLoadArgs, VllmReportArgs, VllmTargetArgs,
};

/// Sends requests to a running server, reads the token streams, reports TTFT, TPOT, ITL, end-to-end
/// latency, throughput and goodput
///
/// Takes the flags of `vllm bench serve`, unique prefixes of them included, and prints its table.
/// `--config FILE` reads flags from YAML, `--flag.key VALUE` makes JSON.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm serve",
    version,
    after_help = EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ServeArgs {
    #[command(flatten)]
    target: VllmTargetArgs,
    #[command(flatten)]
    load: VllmLoadArgs,
    #[command(flatten)]
    content: ContentArgs,
    #[command(flatten)]
    dataset: VllmDatasetArgs,
    #[command(flatten)]
    report: VllmReportArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    own: OwnArgs,
    #[command(flatten)]
    pub(crate) record: RecordArgs,
}

impl ServeArgs {
    /// Whether only the plan is wanted.
    pub fn is_dry_run(&self) -> bool {
        self.own.dry_run
    }
}

const EXAMPLES: &str = "\
Examples:
  # Try it without a server:
  bench-vllm serve --simulate

  # A vLLM server on this machine, 500 random prompts, 64 at a time, result kept:
  bench-vllm serve --model NAME --random-input-len 1024 --random-output-len 256 \\
    --num-prompts 500 --max-concurrency 64 --save-result

  # Its chat endpoint at 8 requests per second, with objectives:
  bench-vllm serve --backend openai-chat --model NAME --dataset-name sharegpt \\
    --dataset-path sharegpt.json --request-rate 8 --goodput ttft:500 tpot:50

Exit codes: 0 done, 1 bug, 2 usage, 3 bad plan or data, 4 server not ready or refused,
5 too few requests succeeded, 6 objective missed, 7 output not written, 8 hung, 130/143 interrupted.";

impl From<ServeArgs> for VllmServeArgs {
    fn from(args: ServeArgs) -> Self {
        let ServeArgs { target, load, content, dataset, report, transport, own, record: _ } = args;
        Self { target, load, content, dataset, report, transport, own }
    }
}
