//! Groups of flags of the profiler's commands.

use crate::args::{NetworkArgs, values};
use crate::hidden::Header;
use clap::{Args, ValueEnum};
use servebench_control::ProfileRequest;

/// Every flag of `sglang.profiler` 0.5.23: what may be abbreviated.
pub const PROFILER_FLAGS: &[&str] = &[
    "--cpu",
    "--gpu",
    "--help",
    "--mem",
    "--merge-profiles",
    "--no-cpu",
    "--no-gpu",
    "--no-mem",
    "--no-merge-profiles",
    "--no-profile-by-stage",
    "--no-rpd",
    "--num-steps",
    "--output-dir",
    "--profile-by-stage",
    "--profile-prefix",
    "--rpd",
    "--url",
];

/// Kinds of servers on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ServerKind {
    /// Ask the server.
    #[default]
    Auto,
    /// SGLang.
    Sglang,
    /// vLLM.
    Vllm,
}

/// How servers are reached.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Connection")]
pub struct ConnectionArgs {
    /// Headers sent with every call to the server; keys also come from OPENAI_API_KEY and API_KEY
    ///
    /// A server with an admin key takes only that one for its control calls:
    /// `--header "Authorization=Bearer KEY"`.
    #[arg(long, num_args = 1.., value_name = "KEY=VALUE", value_parser = values::header)]
    pub header: Vec<Header>,

    /// Trust any certificate
    #[arg(long)]
    pub insecure: bool,

    /// Use the built-in simulated server: needs no server and no network
    #[arg(long)]
    pub simulate: bool,

    /// The way to the server.
    #[command(flatten)]
    pub network: NetworkArgs,
}

/// Which servers a profiler command is for.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Servers")]
pub struct ServersArgs {
    /// Address of the server, or of several workers [default: http://localhost:30000]
    #[arg(long, num_args = 1.., value_name = "URL")]
    pub url: Vec<String>,

    /// Prefill workers of a server that is split into prefill and decode
    #[arg(long, num_args = 1.., value_name = "URL", conflicts_with_all = ["url", "profile_decode_url"])]
    pub profile_prefill_url: Vec<String>,

    /// Decode workers of such a server; the two are profiled one after the other, not together
    #[arg(long, num_args = 1.., value_name = "URL", conflicts_with = "url")]
    pub profile_decode_url: Vec<String>,

    /// What the server is
    #[arg(long, value_name = "KIND", default_value = "auto")]
    pub server: ServerKind,

    /// How it is reached.
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// What is profiled. What is not given is left to the server or to the command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What is profiled")]
pub struct WhatArgs {
    /// Base folder of the traces, on the server's machine [default: $SGLANG_TORCH_PROFILER_DIR or
    /// /tmp; of `profiler start`: the server's own]
    #[arg(long, value_name = "DIR")]
    pub output_dir: Option<String>,

    /// Forward steps after which the server stops by itself [default: 5; of `profiler start`: none]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub num_steps: Option<u64>,

    /// The server's forward step, counted from the server's start, at which to begin [default: now]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub start_step: Option<u64>,

    /// Capture prefill and decode apart, N steps each
    #[arg(long, overrides_with = "no_profile_by_stage")]
    pub profile_by_stage: bool,

    /// Capture all steps together (the default)
    #[arg(long, overrides_with = "profile_by_stage")]
    pub no_profile_by_stage: bool,

    /// Stages to capture (servers with SGLANG_PROFILE_V2 only) [default: both]
    #[arg(long, num_args = 1.., value_name = "STAGE", requires = "profile_by_stage",
        value_parser = ["prefill", "decode"])]
    pub profile_stages: Vec<String>,

    /// Put before the names of trace files
    #[arg(long, value_name = "TEXT")]
    pub profile_prefix: Option<String>,

    /// First part of the names of trace files [default: the server's clock]
    #[arg(long, value_name = "TEXT")]
    pub profile_id: Option<String>,

    /// Profile the processor (on by default)
    #[arg(long, overrides_with = "no_cpu")]
    pub cpu: bool,
    /// Leave the processor out
    #[arg(long, overrides_with = "cpu")]
    pub no_cpu: bool,

    /// Profile the accelerator (on by default)
    #[arg(long, overrides_with = "no_gpu")]
    pub gpu: bool,
    /// Leave the accelerator out
    #[arg(long, overrides_with = "gpu")]
    pub no_gpu: bool,

    /// Record allocations of device memory
    #[arg(long, overrides_with = "no_mem")]
    pub mem: bool,
    /// Record no allocations (the default)
    #[arg(long, overrides_with = "mem")]
    pub no_mem: bool,

    /// Use ROCm's profiler
    #[arg(long, overrides_with = "no_rpd")]
    pub rpd: bool,
    /// Leave ROCm's profiler out (the default)
    #[arg(long, overrides_with = "rpd")]
    pub no_rpd: bool,

    /// All that is profiled, by the server's names: CPU GPU XPU MEM RPD CUDA_PROFILER …
    ///
    /// CUDA_PROFILER starts and stops the capture range of a server that runs under nsys.
    #[arg(long, num_args = 1.., value_name = "NAME", value_parser = activity,
        conflicts_with_all = ["cpu", "no_cpu", "gpu", "no_gpu", "mem", "no_mem", "rpd", "no_rpd"])]
    pub activities: Vec<String>,

    /// Have the server merge the traces of all ranks into one more file
    #[arg(long, overrides_with = "no_merge_profiles")]
    pub merge_profiles: bool,
    /// Leave them apart (the default)
    #[arg(long, overrides_with = "merge_profiles")]
    pub no_merge_profiles: bool,

    /// Put request and KV-length sums into the `step[...]` spans
    #[arg(long)]
    pub detailed_annotations: bool,

    /// Record Python call stacks (servers do unless SGLANG_PROFILE_WITH_STACK is off)
    #[arg(long, overrides_with = "no_with_stack")]
    pub with_stack: bool,
    /// Record no call stacks: smaller files
    #[arg(long, overrides_with = "with_stack")]
    pub no_with_stack: bool,

    /// Record the shapes of operators' inputs (servers do unless SGLANG_PROFILE_RECORD_SHAPES is off)
    #[arg(long, overrides_with = "no_record_shapes")]
    pub record_shapes: bool,
    /// Record no shapes: smaller files
    #[arg(long, overrides_with = "record_shapes")]
    pub no_record_shapes: bool,
}

/// An activity's name, as servers write it.
fn activity(text: &str) -> Result<String, String> {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if !text.is_empty() && text.chars().all(known) {
        Ok(text.to_ascii_uppercase())
    } else {
        Err("expected a name such as CPU, GPU or CUDA_PROFILER".into())
    }
}

/// What a pair of flags says; `None` if neither was given.
const fn pair(yes: bool, no: bool) -> Option<bool> {
    match (yes, no) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

impl WhatArgs {
    /// The flags that were given and that only SGLang knows.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let flags = [
            ("--output-dir", self.output_dir.is_some()),
            ("--num-steps", self.num_steps.is_some()),
            ("--start-step", self.start_step.is_some()),
            ("--profile-by-stage", self.profile_by_stage),
            ("--profile-prefix", self.profile_prefix.is_some()),
            ("--profile-id", self.profile_id.is_some()),
            ("--cpu", self.cpu || self.no_cpu),
            ("--gpu", self.gpu || self.no_gpu),
            ("--mem", self.mem),
            ("--rpd", self.rpd),
            ("--activities", !self.activities.is_empty()),
            ("--merge-profiles", self.merge_profiles),
            ("--detailed-annotations", self.detailed_annotations),
            ("--with-stack", self.with_stack || self.no_with_stack),
            ("--record-shapes", self.record_shapes || self.no_record_shapes),
        ];
        flags.iter().filter(|(_, given)| *given).map(|(flag, _)| *flag).collect()
    }

    /// The activities, in the order of the Python tool; empty when nothing was said about them.
    fn chosen(&self) -> Vec<String> {
        let toggles = [
            ("CPU", pair(self.cpu, self.no_cpu), true),
            ("GPU", pair(self.gpu, self.no_gpu), true),
            ("MEM", pair(self.mem, self.no_mem), false),
            ("RPD", pair(self.rpd, self.no_rpd), false),
        ];
        if toggles.iter().all(|(_, said, _)| said.is_none()) {
            return self.activities.clone();
        }
        let on = toggles.iter().filter(|(_, said, default)| said.unwrap_or(*default));
        on.map(|(name, ..)| (*name).to_owned()).collect()
    }

    /// Whether all activities were switched off.
    pub(crate) fn is_nothing(&self) -> bool {
        let toggled = [self.no_cpu, self.no_gpu].iter().any(|no| *no);
        toggled && self.chosen().is_empty()
    }

    /// The request with what was given, and nothing else.
    pub(crate) fn request(&self) -> ProfileRequest {
        ProfileRequest {
            activities: self.chosen(),
            num_steps: self.num_steps,
            profile_by_stage: self.profile_by_stage,
            profile_stages: (!self.profile_stages.is_empty()).then(|| self.profile_stages.clone()),
            output_dir: self.output_dir.clone(),
            profile_prefix: self.profile_prefix.clone(),
            start_step: self.start_step,
            with_stack: pair(self.with_stack, self.no_with_stack),
            record_shapes: pair(self.record_shapes, self.no_record_shapes),
            profile_id: self.profile_id.clone(),
            merge_profiles: pair(self.merge_profiles, self.no_merge_profiles),
            detailed_annotations: self.detailed_annotations.then_some(true),
        }
    }
}

/// How long the profiler's main command profiles and waits.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "How long")]
pub struct LengthArgs {
    /// Profile for so many seconds and stop, instead of a number of steps
    #[arg(long, value_name = "SECONDS", value_parser = values::positive_time, conflicts_with = "num_steps")]
    pub duration: Option<f64>,

    /// Longest wait for the traces, in seconds; then the profile is stopped. 0: do not wait, the
    /// server stops by itself [default: 300, and 0 where the server's folder cannot be seen]
    #[arg(long, value_name = "SECONDS", conflicts_with = "duration")]
    pub wait: Option<u32>,
}
