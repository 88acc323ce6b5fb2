//! Measures LLM inference servers: flags, table and result of sglang.bench_serving, and more.

mod args;

pub use args::{AnalyzeCommand, Args, ReplayCommand};

use servebench_cli::{
    Code, Environment, Failure, Io, Plan, analyze, parse, parse_as, replay, resumed_arguments,
    serve,
};
use std::ffi::OsString;

/// Runs the command with these arguments (without the program's name).
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn run(arguments: Vec<OsString>, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    if arguments.first().is_some_and(|word| word == "analyze") {
        let rest = arguments.into_iter().skip(1).collect();
        let command = parse_as::<AnalyzeCommand>(rest, "sglang.bench_serving", &[], io)?;
        return command
            .map_or(Ok(Code::Done), |command| analyze::<Args>(&command.args, environment, io));
    }
    if arguments.first().is_some_and(|word| word == "replay") {
        let rest = arguments.into_iter().skip(1).collect();
        let command = parse_as::<ReplayCommand>(rest, "sglang.bench_serving", &[], io)?;
        return command
            .map_or(Ok(Code::Done), |command| replay::<Args>(&command.args, environment, io));
    }
    let arguments = resumed_arguments(arguments)?;
    let Some(args) = parse::<Args>(arguments.clone(), io)? else { return Ok(Code::Done) };
    let dry_run = args.is_dry_run();
    let plan = Plan::new(args.into(), environment)?.with_arguments::<Args>(&arguments)?;
    if dry_run {
        plan.print(io)?;
        return Ok(Code::Done);
    }
    serve(&plan, environment, io)
}
