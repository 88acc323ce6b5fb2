//! The raw log of a run, and what is made of it later.

use super::values;
use clap::Args;
use servebench_metrics::Slo;
use std::path::PathBuf;

/// The raw log.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Raw log")]
pub struct LogArgs {
    /// Keep each request's record, as soon as it is over, in this file, which must be new
    ///
    /// Whatever ends the run, also `kill -9`, all that was over a second before is in the file.
    /// `bench-serving analyze FILE` makes table and result of it, also with other objectives or of a part
    /// of the run; `--resume FILE` goes on with a run that was cut. It holds the replies' texts, no prompts
    /// and no headers.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    pub raw_log: Option<PathBuf>,

    /// Go on with the run of this raw log: send what was not sent, and what was cut off
    ///
    /// The flags are those of the run, and need not be given again but for --header, whose values are not in
    /// the log. The requests must be the same ones (the plan's hash tells). What failed stays failed. The
    /// file is appended to, and the result is that of all parts together.
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

/// Which run is looked at again, and which part of it.
#[derive(Args, Clone, Debug)]
pub struct PastArgs {
    /// The raw log of a run
    pub file: PathBuf,

    /// Leave out what was over before this many seconds of the run
    #[arg(long, value_name = "SECONDS", value_parser = values::not_negative)]
    pub from: Option<f64>,

    /// Leave out what was over at this many seconds of the run or later
    #[arg(long, value_name = "SECONDS", value_parser = values::not_negative)]
    pub to: Option<f64>,

    /// Tokenizer for a log that was cut before replies were counted [default: that of the run]
    #[arg(long, value_name = "PATH")]
    pub tokenizer: Option<String>,
}

/// What `analyze` is to make of a raw log. What is left out is as the run had it.
#[derive(Args, Clone, Debug)]
pub struct AnalyzeArgs {
    /// The run.
    #[command(flatten)]
    pub past: PastArgs,

    /// Further percentiles of TTFT, TPOT, ITL and E2E latency, with commas between them
    #[arg(long, value_name = "P", value_delimiter = ',', value_parser = values::percentile)]
    pub percentiles: Vec<f64>,

    /// Objectives: a request is good if it meets them all
    #[arg(long, num_args = 1.., value_name = "KEY:MS", value_parser = values::objective)]
    pub goodput: Vec<Slo>,

    /// File to which the result is appended as one JSON line [default: the table alone]
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,

    /// Put per-request arrays into the result
    #[arg(long)]
    pub output_details: bool,

    /// Draw output tokens per second and concurrent requests over the run, below the table
    #[arg(long)]
    pub plot_throughput: bool,

    /// Also report the steady state: the longest time with at least this share of the peak concurrency
    #[arg(long, value_name = "RATIO", value_parser = values::share)]
    pub steady_state_concurrency_ratio: Option<f64>,

    /// Label that is copied into the result
    #[arg(long)]
    pub tag: Option<String>,
}
