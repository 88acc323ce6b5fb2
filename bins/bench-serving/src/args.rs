//! The command line of `bench-serving`.

use clap::Parser;
use servebench_cli::ServingArgs;
use servebench_cli::args::{
    AnalyzeArgs, DatasetArgs, LoadArgs, LogArgs, OwnArgs, ProfileArgs, RecordArgs, ReplayArgs,
    ReportArgs, SamplingArgs, TargetArgs,
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
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    record: RecordArgs,
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
5 too few requests succeeded, 6 objective missed, 7 output not written, 8 hung, 130/143 interrupted.";

impl From<Args> for ServingArgs {
    fn from(args: Args) -> Self {
        let Args { target, dataset, load, sampling, report, profile, own, log, record } = args;
        Self { target, dataset, load, sampling, report, profile, own, log, record }
    }
}

/// Makes table and result of a run from its raw log
///
/// What is left out is as the run had it; the result of a whole log is then that of the run. A run that was
/// cut is marked as interrupted and partial. With --from or --to those requests count that were over in that
/// time, and throughput is theirs over that time.
#[derive(Parser, Debug)]
#[command(
    name = "bench-serving analyze",
    version,
    after_help = ANALYZE_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct AnalyzeCommand {
    #[command(flatten)]
    pub(crate) args: AnalyzeArgs,
}

const ANALYZE_EXAMPLES: &str = "\
Examples:
  # A run that keeps a log, and its report once more:
  bench-serving --simulate --raw-log run.log
  bench-serving analyze run.log

  # Other objectives, without the first 30 seconds, with every request in a file:
  bench-serving analyze run.log --goodput ttft:300 tpot:40 --from 30 --output-details \\
    --output-file again.jsonl

Exit codes: 0 done, 2 usage, 3 not a log that can be read, 5 too few requests succeeded,
6 objective missed, 7 output not written, 8 hung.";

/// Makes table and result of a run from its recording
///
/// The bytes that were received go through the decoders once more, with the times at which they came: the
/// result is that of the run, unless the decoders have changed. Other flags than --only and --redact do what
/// they do with analyze.
#[derive(Parser, Debug)]
#[command(
    name = "bench-serving replay",
    version,
    after_help = REPLAY_EXAMPLES,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ReplayCommand {
    #[command(flatten)]
    pub(crate) args: ReplayArgs,
}

const REPLAY_EXAMPLES: &str = "\
Examples:
  # A run that is recorded, and its report once more:
  bench-serving --simulate --record run.rec
  bench-serving replay run.rec

  # What request 17 received, and what was made of it:
  bench-serving replay run.rec --only 17

  # A copy to send away, without what the server said:
  bench-serving replay run.rec --redact copy.rec

Exit codes: 0 done, 2 usage, 3 not a recording that can be read, 5 too few requests succeeded,
6 objective missed, 7 output not written, 8 hung.";
