//! Sends one prompt to a live LLM inference server; see the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    servebench_cli::main(send_one::run)
}
