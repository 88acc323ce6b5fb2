//! The command line of `bench-vllm serve`.

use clap::Parser;
use servebench_cli::args::{OwnArgs, RecordArgs};
use servebench_cli::vllm::VllmServeArgs;
use servebench_cli::vllm::args::{
    ContentArgs, TransportArgs, VllmAnalyzeArgs, VllmDatasetArgs, VllmLoadArgs, VllmLogArgs,
    VllmReplayArgs, VllmReportArgs, VllmTargetArgs,
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
    pub(crate) log: VllmLogArgs,
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
        let ServeArgs { target, load, content, dataset, report, transport, own, log: _, record: _ } =
            args;
        Self { target, load, content, dataset, report, transport, own }
    }
}

/// Makes table and result of a run of serve from its raw log
///
/// What is left out is as the run had it; the numbers of a whole log are then those of the run. A run that was cut
/// is marked as interrupted and partial. With --from or --to those requests count that were over in that time, and
/// throughput is theirs over that time. Files are written only if that is asked for here.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm analyze",
    version,
    after_help = ANALYZE_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct AnalyzeCommand {
    #[command(flatten)]
    pub(crate) args: VllmAnalyzeArgs,
}

const ANALYZE_EXAMPLES: &str = "\
Examples:
  # A run that keeps a log, and its report once more:
  bench-vllm serve --simulate --raw-log run.log
  bench-vllm analyze run.log

  # Other objectives and percentiles, without the first 30 seconds, with every request in a file:
  bench-vllm analyze run.log --goodput ttft:300 tpot:40 --metric-percentiles 50,99.9 --from 30 \\
    --save-result --save-detailed --result-filename again.json

Exit codes: 0 done, 2 usage, 3 not a log that can be read, 5 too few requests succeeded,
6 objective missed, 7 output not written, 8 hung.";

/// Makes table and result of a run of serve from its recording
///
/// The bytes that were received go through the decoders once more, with the times at which they came: the
/// numbers are those of the run, unless the decoders have changed. Other flags than --only and --redact do what
/// they do with analyze.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm replay",
    version,
    after_help = REPLAY_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ReplayCommand {
    #[command(flatten)]
    pub(crate) args: VllmReplayArgs,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  # A run that is recorded, and its report once more:
  bench-vllm serve --simulate --record run.rec
  bench-vllm replay run.rec

  # What request 17 received, and what was made of it:
  bench-vllm replay run.rec --only 17

  # A copy to send away, without what the server said:
  bench-vllm replay run.rec --redact copy.rec

Exit codes: 0 done, 2 usage, 3 not a recording that can be read, 5 too few requests succeeded,
6 objective missed, 7 output not written, 8 hung.";
