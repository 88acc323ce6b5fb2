//! What is reported and where.

use super::super::values;
use clap::Args;
use servebench_metrics::Slo;
use std::path::PathBuf;

/// What is reported and where.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Report")]
pub struct VllmReportArgs {
    /// Latencies to show and keep, separated by commas: ttft, tpot, itl, e2el, client_queue_time,
    /// e2el_including_client_queue [default: ttft,tpot,itl]
    #[arg(long, value_name = "NAMES")]
    pub percentile_metrics: Option<String>,

    /// Percentiles of them, separated by commas [default: 99]
    #[arg(long, value_name = "NUMBERS")]
    pub metric_percentiles: Option<String>,

    /// Objectives: a request is good if it meets them all
    #[arg(long, num_args = 1.., value_name = "NAME:MS", value_parser = values::objective)]
    pub goodput: Vec<Slo>,

    /// Also report the steady state: the longest time with at least this share of the peak concurrency
    ///
    /// Above 0 and at most 1. At both ends of a run few requests are under way, so that its throughput is
    /// less than what the server can do; the steady state leaves the ends out. Its numbers are printed below
    /// the table and are `servebench.steady_state` in the result.
    #[arg(long, value_name = "RATIO", value_parser = values::share)]
    pub steady_state_concurrency_ratio: Option<f64>,

    /// Begin of the result file's name [default: the backend]
    #[arg(long)]
    pub label: Option<String>,

    /// Further keys of the result
    #[arg(long, num_args = 0.., value_name = "KEY=VALUE", value_parser = values::metadata)]
    pub metadata: Vec<(String, String)>,

    /// Write the result to a file
    #[arg(long)]
    pub save_result: bool,

    /// Keep per-request arrays in it
    #[arg(long)]
    pub save_detailed: bool,

    /// Append to the file, one result a line
    #[arg(long)]
    pub append_result: bool,

    /// Folder of the result file [default: the current one]
    #[arg(long, value_name = "FOLDER")]
    pub result_dir: Option<PathBuf>,

    /// Name of the result file [default: made of label, rate, model and time]
    #[arg(long, value_name = "NAME")]
    pub result_filename: Option<PathBuf>,

    /// Write the course of every request as one HTML page, beside where the result is or would be:
    /// its name with .timeline.html
    #[arg(long)]
    pub plot_timeline: bool,

    /// Inter-token latencies from which a bar of that page is of the second and third colour, in ms
    /// [default: 25,50]
    #[arg(long, value_name = "MS,MS")]
    pub timeline_itl_thresholds: Option<String>,

    /// Write histograms of prompt and output lengths as SVG, with .dataset_stats.svg as end of its
    /// name
    #[arg(long)]
    pub plot_dataset_stats: bool,
}
