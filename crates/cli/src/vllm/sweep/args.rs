//! The command lines of `bench-vllm sweep`.

use super::workload::WorkloadVariable;
use clap::{Args, Parser};
use std::path::PathBuf;

/// Flags of both sweeps.
#[derive(Args, Clone, Debug)]
pub struct ServeSweepArgs {
    /// Command that starts the server; it must stay in the foreground
    #[arg(long, value_name = "COMMAND")]
    pub serve_cmd: String,

    /// Command of the client; `vllm bench serve …` and `bench-vllm serve …` are this program
    #[arg(long, value_name = "COMMAND")]
    pub bench_cmd: String,

    /// Command run after each benchmark, in place of the calls that reset the server's caches
    #[arg(long, value_name = "COMMAND")]
    pub after_bench_cmd: Option<String>,

    /// Show what server and client print, on standard error (what they say there is always shown)
    #[arg(long)]
    pub show_stdout: bool,

    /// Longest wait for the server to be ready, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub server_ready_timeout: u32,

    /// JSON file with sets of options of the server: a list of objects, or an object of named ones
    #[arg(long, value_name = "FILE")]
    pub serve_params: Option<PathBuf>,

    /// JSON file with sets of options of the client
    #[arg(long, value_name = "FILE")]
    pub bench_params: Option<PathBuf>,

    /// Only combinations in which these are equal, as in `max_num_seqs=max_concurrency,a=b`
    #[arg(long, value_name = "LIST", default_value = "")]
    pub link_vars: String,

    /// Folder of experiments
    #[arg(short, long, value_name = "DIR", default_value = "results")]
    pub output_dir: PathBuf,

    /// Folder of this experiment in it [default: date and time]
    #[arg(short, long, value_name = "NAME")]
    pub experiment_name: Option<String>,

    /// Runs of each combination
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub num_runs: u32,

    /// Prompts of a run before those of each combination, which is not counted; 0 for none
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub warmup_num_prompts: u32,

    /// Go on after a run or a server that failed
    #[arg(long)]
    pub continue_on_error: bool,

    /// Print the commands, run nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Go on with an experiment: what it measured is not measured again
    #[arg(long)]
    pub resume: bool,
}

/// Runs a benchmark for each combination of settings of server and client
///
/// Takes the flags of `vllm bench sweep serve`.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm sweep serve",
    version,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ServeSweepCommand {
    /// The sweep.
    #[command(flatten)]
    pub args: ServeSweepArgs,
}

/// Runs benchmarks at loads between one request at a time and all at once
///
/// Takes the flags of `vllm bench sweep serve_workload`.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm sweep serve_workload",
    version,
    max_term_width = 100,
    args_override_self = true
)]
pub struct ServeWorkloadCommand {
    /// The sweep.
    #[command(flatten)]
    pub args: ServeSweepArgs,

    /// What makes the load
    #[arg(long, value_name = "VARIABLE", value_enum, default_value_t)]
    pub workload_var: WorkloadVariable,

    /// Loads, the two ends among them
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    pub workload_iters: u32,
}

/// Draws curves of what sweeps measured, as SVG
///
/// Takes the flags of `vllm bench sweep plot`.
#[derive(Parser, Debug)]
#[command(name = "bench-vllm sweep plot", version, max_term_width = 100, args_override_self = true)]
pub struct PlotCommand {
    /// Folder below which the summaries are
    pub experiment_dir: PathBuf,

    /// Folder of the pictures, inside the experiment's [default: the experiment's]
    #[arg(long, value_name = "DIR")]
    pub fig_dir: Option<PathBuf>,

    /// Variables with a picture for each of their values, separated by commas
    #[arg(long, value_name = "LIST", default_value = "")]
    pub fig_by: String,

    /// Variables with a row of charts for each
    #[arg(long, value_name = "LIST", default_value = "")]
    pub row_by: String,

    /// Variables with a column of charts for each
    #[arg(long, value_name = "LIST", default_value = "")]
    pub col_by: String,

    /// Variables with a curve for each
    #[arg(long, value_name = "LIST", default_value = "")]
    pub curve_by: String,

    /// Variable along the horizontal axis
    #[arg(long, value_name = "NAME", default_value = "total_token_throughput")]
    pub var_x: String,

    /// Variable along the vertical axis
    #[arg(long, value_name = "NAME", default_value = "median_ttft_ms")]
    pub var_y: String,

    /// Runs that are drawn, as in `max_concurrency<=32,model==a`
    #[arg(long, value_name = "LIST", default_value = "")]
    pub filter_by: String,

    /// Variables drawn in classes, as in `request_rate%5`
    #[arg(long, value_name = "LIST", default_value = "")]
    pub bin_by: String,

    /// linear, log or sqrt
    #[arg(long, value_name = "SCALE")]
    pub scale_x: Option<String>,

    /// linear, log or sqrt
    #[arg(long, value_name = "SCALE")]
    pub scale_y: Option<String>,

    /// First part of the pictures' names
    #[arg(long, value_name = "NAME", default_value = "FIGURE")]
    pub fig_name: String,

    /// No bars of one standard deviation
    #[arg(long)]
    pub no_error_bars: bool,

    /// Height of a chart in inches
    #[arg(long, value_name = "INCHES", default_value_t = 6.4)]
    pub fig_height: f64,

    /// Has no effect, and says so: pictures are SVG, sharp at any size
    #[arg(long, value_name = "N")]
    pub fig_dpi: Option<u32>,

    /// Tell what would be drawn
    #[arg(long)]
    pub dry_run: bool,
}

/// Draws tokens/s for each user against tokens/s of each GPU, as SVG
///
/// Takes the flags of `vllm bench sweep plot_pareto`.
#[derive(Parser, Debug)]
#[command(
    name = "bench-vllm sweep plot_pareto",
    version,
    max_term_width = 100,
    args_override_self = true
)]
pub struct PlotParetoCommand {
    /// Folder below which the summaries are
    pub experiment_dir: PathBuf,

    /// Variable with the number of users
    #[arg(long, value_name = "NAME", default_value = "max_concurrency")]
    pub user_count_var: String,

    /// Variable with the number of GPUs [default: the product of the parallel sizes]
    #[arg(long, value_name = "NAME")]
    pub gpu_count_var: Option<String>,

    /// Variables written at the points of the frontier
    #[arg(long, value_name = "LIST", default_value = "max_concurrency,gpu_count")]
    pub label_by: String,

    /// Tell what would be drawn
    #[arg(long)]
    pub dry_run: bool,
}
