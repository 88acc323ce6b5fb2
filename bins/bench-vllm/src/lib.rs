//! Measures LLM inference servers: flags, table and result of vllm bench, and more.

mod serve;

pub use serve::ServeArgs;

use servebench_cli::vllm::{VllmPlan, parse_serve, serve};
use servebench_cli::{Code, Environment, Failure, Io};
use std::ffi::OsString;

const HELP: &str = "\
Measures LLM inference servers: flags, table and result of vllm bench, and more

Usage: bench-vllm <COMMAND> [OPTIONS]

Commands:
  serve  Sends requests to a running server and reports latencies and throughput

Options:
      --help     This text; after a command, its flags
      --version  The version";

/// Runs the command with these arguments (without the program's name).
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn run(
    mut arguments: Vec<OsString>,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let command = if arguments.is_empty() { OsString::new() } else { arguments.remove(0) };
    let say = |text: &str| match io.print(text) {
        Ok(()) => Ok(Code::Done),
        Err(error) => Err(Failure::new(Code::Output, error)),
    };
    match command.to_str() {
        Some("serve") => run_serve(arguments, environment, io),
        Some("--help" | "-h" | "help") => say(HELP),
        Some("--version" | "-V") => say(concat!("bench-vllm ", env!("CARGO_PKG_VERSION"))),
        _ => Err(Failure::usage(format!(
            "no command is called `{}` (known: serve)",
            command.to_string_lossy()
        ))
        .hint("bench-vllm --help lists what there is")),
    }
}

fn run_serve(
    arguments: Vec<OsString>,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let Some(args) = parse_serve::<ServeArgs>(arguments, io)? else { return Ok(Code::Done) };
    let dry_run = args.is_dry_run();
    let plan = VllmPlan::new(args.into(), environment)?;
    if dry_run {
        plan.print(io)?;
        return Ok(Code::Done);
    }
    serve(&plan, environment, io)
}
