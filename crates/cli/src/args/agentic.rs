//! Conversations of agents.

use clap::Args;

/// The part of `agentic-trace` that is taken.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset agentic-trace")]
pub struct AgenticArgs {
    /// Conversation to begin with, counted from 0; past the last one it begins anew [default: 0]
    #[arg(long, value_name = "N")]
    pub dataset_offset: Option<i64>,

    /// Most turns of a conversation [default: all]
    #[arg(long, value_name = "N")]
    pub agentic_max_turns: Option<u32>,
}
