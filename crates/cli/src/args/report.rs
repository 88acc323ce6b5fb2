//! What is reported and where.

use super::values;
use clap::Args;
use servebench_metrics::Slo;
use std::path::PathBuf;

/// What is reported and where.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Report")]
pub struct ReportArgs {
    /// File to which the result is appended as one JSON line [default: named after the run]
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,

    /// Put per-request arrays into the result
    #[arg(long)]
    pub output_details: bool,

    /// Objectives: a request is good if it meets them all
    #[arg(long, num_args = 1.., value_name = "KEY:MS", value_parser = values::objective)]
    pub goodput: Vec<Slo>,

    /// Report how many prompt tokens the server had cached (sglang backends)
    #[arg(long)]
    pub cache_report: bool,

    /// Print a line when a request starts and when it ends (backend sglang-oai-chat)
    #[arg(long)]
    pub print_requests: bool,

    /// Draw output tokens per second and concurrent requests over the run, below the table
    ///
    /// Plain text, as wide as the terminal, or 80 columns where there is none. Runs of less than a
    /// minute are drawn in steps of less than a second, long ones in longer steps.
    #[arg(long)]
    pub plot_throughput: bool,

    /// Also report the steady state: the longest time with at least this share of the peak concurrency
    ///
    /// Above 0 and at most 1; 0.5 is a good beginning, since requests that end together leave a short dip
    /// and near 1 every dip ends the window. At both ends of a run few requests are under
    /// way, so that its throughput is less than what the server can do; the steady state leaves the
    /// ends out. What SGLang's `steady_state_serving` does; its numbers are printed below the table and
    /// are `steady_state` in the result.
    #[arg(long, value_name = "RATIO", value_parser = values::share)]
    pub steady_state_concurrency_ratio: Option<f64>,

    /// File to which the steady state is appended as one JSON line of its own
    #[arg(long, value_name = "FILE", requires = "steady_state_concurrency_ratio")]
    pub steady_state_output_file: Option<PathBuf>,

    /// Show no progress
    #[arg(long)]
    pub disable_tqdm: bool,

    /// Label that is copied into the result
    #[arg(long)]
    pub tag: Option<String>,

    /// Smallest share of requests that must succeed; less is exit code 5 [default: any success]
    #[arg(long, value_name = "RATIO", value_parser = values::ratio)]
    pub min_success_rate: Option<f64>,
}
