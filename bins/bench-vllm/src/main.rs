//! Measures LLM inference servers: flags, table and result of vllm bench, and more.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    servebench_cli::main(bench_vllm::run)
}
