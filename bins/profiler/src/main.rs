//! Profiles live LLM inference servers; see the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    servebench_cli::main(profiler::run)
}
