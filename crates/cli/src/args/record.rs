//! Recordings of what was received, and what is made of them later.

use super::AnalyzeArgs;
use clap::Args;
use std::path::PathBuf;

/// The recording.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Recording")]
pub struct RecordArgs {
    /// Keep every byte that measured requests receive, with its times, in this file, which must be new
    ///
    /// `replay FILE` makes the same table and result of it, `--only ID` shows what one request
    /// received and what was made of it. Keys and prompts are not in the file; what the server answered
    /// is, and `replay --redact COPY` makes a copy without.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// Keep the bodies of the requests in the recording as well, prompts and all
    #[arg(long, requires = "record")]
    pub record_prompts: bool,
}

/// What `replay` is to make of a recording.
#[derive(Args, Clone, Debug)]
#[command(mut_arg("file", |file| file.help("The recording of a run")))]
pub struct ReplayArgs {
    /// What is reported, and how.
    #[command(flatten)]
    pub analyze: AnalyzeArgs,

    /// What else there is to see.
    #[command(flatten)]
    pub look: LookArgs,
}

/// What `replay` can do in place of a table.
#[derive(Args, Clone, Debug)]
pub struct LookArgs {
    /// Show what this request received, when, and what was made of it; no table
    #[arg(long, value_name = "ID", conflicts_with = "redact")]
    pub only: Option<u64>,

    /// Write a copy without generated text, server's words, prompts and addresses; no table
    ///
    /// Text is replaced by filler of the same length, so that reads, times, chunks and the server's counts stay
    /// what they were. A reply of which that cannot be done is replaced as a whole, and named.
    #[arg(long, value_name = "COPY")]
    pub redact: Option<PathBuf>,
}
