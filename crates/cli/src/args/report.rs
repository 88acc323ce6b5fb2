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
