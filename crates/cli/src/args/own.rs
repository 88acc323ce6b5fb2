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

    /// Taken, and true anyway: every run is sent by a native client
    ///
    /// SGLang's tool hands a run to a client written in Rust with this, for the cases which that client
    /// knows. Here there is no other; all backends, datasets and flags work with it.
    #[arg(long)]
    pub rust_client: bool,

    /// The same as --workers, under the name of SGLang's tool; needs --rust-client, as there
    #[arg(long, value_name = "N", requires = "rust_client", conflicts_with = "workers",
        value_parser = clap::value_parser!(u64).range(1..))]
    pub rust_worker_threads: Option<u64>,

    /// Before the run, measure what this client does to TTFT and ITL, and what saturates it
    ///
    /// The run's own load (rate or cap, requests, output lengths, the warm-up's TTFT, ITL and tokens
    /// per event) goes for 3 seconds to a built-in server in a process of its own, and what the
    /// client measures is compared with what that server did. Done without being asked when the load
    /// looks heavy for the machine: 30000 tokens/s or 1000 requests/s per worker, for 10 seconds or
    /// more, on more than one core.
    #[arg(long, conflicts_with = "no_calibrate")]
    pub calibrate: bool,

    /// Never calibrate, however heavy the load
    #[arg(long)]
    pub no_calibrate: bool,

    /// End with exit code 6 when the verdict is that the client was the limit
    #[arg(long)]
    pub fail_if_client_bound: bool,
}
