//! Measures LLM inference servers: flags, table and result of sglang.bench_serving, and more.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    servebench_cli::main(bench_serving::run)
}
