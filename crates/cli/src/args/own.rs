//! What the Python tool does not have.

use clap::Args;

/// The simulated server and the client itself.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Simulation and client")]
pub struct OwnArgs {
    /// Measure the built-in simulated server: needs no server, no network and no file
    ///
    /// What is left out becomes: dataset random-ids, 200 prompts of 128 tokens in and 64 out, model
    /// `sim`, a byte-level tokenizer.
    #[arg(long)]
    pub simulate: bool,

    /// Print the plan as JSON and stop
    #[arg(long)]
    pub dry_run: bool,

    /// Threads that send requests [default: one per 512 requests in flight, at most one per core]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
}
