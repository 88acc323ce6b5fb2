//! Starts the simulated server; see the library.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    ExitCode::from(sim_server::run(std::env::args_os(), &mut stdout, &mut stderr))
}
