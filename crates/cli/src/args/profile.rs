//! The server's profiler around the run.

use clap::Args;

/// The server's profiler around the run.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Profiling")]
pub struct ProfileArgs {
    /// Start the server's profiler before the measured requests and stop it after them
    ///
    /// A profile slows the server down, and one of a whole run is large: profile a few steps
    /// (--profile-num-steps), and measure in another run.
    #[arg(long)]
    pub profile: bool,

    /// What to profile [default: CPU GPU]
    #[arg(long, num_args = 1.., value_name = "NAME",
        value_parser = ["CPU", "GPU", "CUDA_PROFILER", "XPU", "MEM"])]
    pub profile_activities: Vec<String>,

    /// The server's forward step at which to begin, counted from the server's own start [default: now]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub profile_start_step: Option<u64>,

    /// Forward steps after which the server stops by itself [default: the whole run; by stage: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub profile_steps: Option<u64>,

    /// The same as --profile-steps, which wins
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub profile_num_steps: Option<u64>,

    /// Capture prefill and decode apart, so many steps each
    ///
    /// Always with a number of steps: the server's scheduler does not survive a profile by stage
    /// without one.
    #[arg(long)]
    pub profile_by_stage: bool,

    /// Stages to capture (servers with SGLANG_PROFILE_V2 only) [default: both]
    #[arg(long, num_args = 1.., value_name = "STAGE", requires = "profile_by_stage",
        value_parser = ["prefill", "decode"])]
    pub profile_stages: Vec<String>,

    /// Folder for traces, on the server's machine [default: $SGLANG_TORCH_PROFILER_DIR or /tmp]
    #[arg(long, value_name = "DIR")]
    pub profile_output_dir: Option<String>,

    /// Put before the names of trace files
    #[arg(long, value_name = "TEXT")]
    pub profile_prefix: Option<String>,

    /// Profile workers of a server that is split into prefill and decode, not the server that is measured
    ///
    /// The requests go to the router at --base-url; the profiler's calls go to the workers that
    /// --profile-prefill-url or --profile-decode-url name. A worker whose profiler does not start or
    /// stop is said, and the run goes on.
    #[arg(long)]
    pub pd_separated: bool,

    /// Prefill workers to profile, as in http://p0:30000 http://p1:30000; not together with decode workers
    ///
    /// Profile the one kind in one run and the other in the next: a profile holds up its worker, and
    /// with it the other side.
    #[arg(long, num_args = 0.., value_name = "URL", conflicts_with = "profile_decode_url")]
    pub profile_prefill_url: Vec<String>,

    /// Decode workers to profile
    #[arg(long, num_args = 0.., value_name = "URL")]
    pub profile_decode_url: Vec<String>,
}
