//! The raw log of a run, and what is made of it later.

use super::VllmReportArgs;
use crate::args::{LookArgs, PastArgs};
use clap::Args;
use std::path::PathBuf;

/// The raw log.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Raw log")]
pub struct VllmLogArgs {
    /// Keep each request's record, as soon as it is over, in this file, which must be new
    ///
    /// Whatever ends the run, also `kill -9`, all that was over a second before is in the file.
    /// `bench-vllm analyze FILE` makes table and result of it, also with other objectives, of other metrics or
    /// of a part of the run. It holds the replies' texts, no prompts and no headers.
    #[arg(long, value_name = "FILE")]
    pub raw_log: Option<PathBuf>,
}

/// What `analyze` is to make of a raw log. What is left out is as the run had it.
#[derive(Args, Clone, Debug)]
pub struct VllmAnalyzeArgs {
    /// The run.
    #[command(flatten)]
    pub past: PastArgs,

    /// What is reported. Files are written only if that is asked for again.
    #[command(flatten)]
    pub report: VllmReportArgs,
}

/// What `replay` is to make of a recording.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("file", |file| file.help("The recording of a run")))]
pub struct VllmReplayArgs {
    /// What is reported, and how.
    #[command(flatten)]
    pub analyze: VllmAnalyzeArgs,

    /// What else there is to see.
    #[command(flatten)]
    pub look: LookArgs,
}
