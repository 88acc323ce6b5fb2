//! Traces, sent at their own times.

use clap::{Args, ValueEnum};
use servebench_datasets::Workload;

/// How `mooncake` is replayed.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset mooncake")]
pub struct MooncakeArgs {
    /// Published trace to fetch if --dataset-path is left out
    #[arg(long, value_name = "NAME", default_value = "conversation")]
    pub mooncake_workload: MooncakeWorkload,

    /// Factor by which the gaps of the trace are stretched; 0 sends all at once [default: 1.0]
    #[arg(long, value_name = "FACTOR")]
    pub mooncake_slowdown_factor: Option<f64>,

    /// Requests made of each row of the trace, each going on from the one before [default: 1]
    #[arg(long, value_name = "N")]
    pub mooncake_num_rounds: Option<u32>,
}

/// The published traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the names are the publisher's")]
pub enum MooncakeWorkload {
    Mooncake,
    #[default]
    Conversation,
    Synthetic,
    #[value(name = "toolagent", alias = "agent")]
    ToolAgent,
}

impl From<MooncakeWorkload> for Workload {
    fn from(workload: MooncakeWorkload) -> Self {
        match workload {
            MooncakeWorkload::Mooncake => Self::Mooncake,
            MooncakeWorkload::Conversation => Self::Conversation,
            MooncakeWorkload::Synthetic => Self::Synthetic,
            MooncakeWorkload::ToolAgent => Self::ToolAgent,
        }
    }
}
