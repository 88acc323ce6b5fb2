//! The server's profiler around the run.

use clap::Args;

/// The server's profiler around the run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Profiling")]
pub struct ProfileArgs {
    /// Start the server's profiler before the measured requests and stop it after them
    #[arg(long)]
    pub profile: bool,

    /// What to profile [default: CPU GPU]
    #[arg(long, num_args = 1.., value_name = "NAME",
        value_parser = ["CPU", "GPU", "CUDA_PROFILER", "XPU", "MEM"])]
    pub profile_activities: Vec<String>,

    /// The server's forward step (an absolute count) at which to begin
    #[arg(long, value_name = "N")]
    pub profile_start_step: Option<u64>,

    /// Forward steps after which the server stops by itself
    #[arg(long, value_name = "N")]
    pub profile_steps: Option<u64>,

    /// The same as --profile-steps
    #[arg(long, value_name = "N")]
    pub profile_num_steps: Option<u64>,

    /// Capture prefill and decode apart
    #[arg(long)]
    pub profile_by_stage: bool,

    /// Stages to capture
    #[arg(long, num_args = 1.., value_name = "STAGE")]
    pub profile_stages: Vec<String>,

    /// Folder for traces, on the server's machine [default: $SGLANG_TORCH_PROFILER_DIR or /tmp]
    #[arg(long, value_name = "DIR")]
    pub profile_output_dir: Option<String>,

    /// Put before the names of trace files
    #[arg(long, value_name = "TEXT")]
    pub profile_prefix: Option<String>,
}
