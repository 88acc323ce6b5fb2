//! How a few steps of a server are profiled, for the commands that profile a request of their own.

use clap::Args;
use servebench_control::ProfileRequest;

/// How a few forward steps are profiled.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Profiling")]
pub struct StepsArgs {
    /// Forward steps to profile
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub profile_steps: u64,

    /// Capture prefill and decode apart, N steps each
    #[arg(long)]
    pub profile_by_stage: bool,

    /// Put before the names of trace files
    #[arg(long, value_name = "TEXT")]
    pub profile_prefix: Option<String>,

    /// Base folder of the traces, on the server's machine [default: $SGLANG_TORCH_PROFILER_DIR or /tmp]
    #[arg(long, value_name = "DIR")]
    pub profile_output_dir: Option<String>,
}

impl StepsArgs {
    /// What is asked of the profiler.
    pub(crate) fn request(&self) -> ProfileRequest {
        ProfileRequest {
            num_steps: Some(self.profile_steps),
            profile_by_stage: self.profile_by_stage,
            profile_prefix: self.profile_prefix.clone(),
            output_dir: self.profile_output_dir.clone(),
            ..ProfileRequest::default()
        }
    }
}
