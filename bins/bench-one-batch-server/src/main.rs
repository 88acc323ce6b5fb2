//! Sends whole batches of prompts to an LLM inference server; see the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    servebench_cli::main(bench_one_batch_server::run)
}
