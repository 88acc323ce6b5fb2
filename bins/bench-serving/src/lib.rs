//! Measures LLM inference servers: flags, table and result of sglang.bench_serving, and more.

mod args;

pub use args::Args;

use servebench_cli::{Code, Environment, Failure, Io, Plan, parse, serve};
use std::ffi::OsString;

/// Runs the command with these arguments (without the program's name).
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn run(arguments: Vec<OsString>, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    let Some(args) = parse::<Args>(arguments, io)? else { return Ok(Code::Done) };
    let dry_run = args.is_dry_run();
    let plan = Plan::new(args.into(), environment)?;
    if dry_run {
        plan.print(io)?;
        return Ok(Code::Done);
    }
    serve(&plan, environment, io)
}
