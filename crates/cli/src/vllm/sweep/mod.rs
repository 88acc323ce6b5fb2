//! Sweeps: one benchmark for each combination of settings of server and client, and pictures of them.
//!
//! [`sweep`] reads `serve`, `serve_workload`, `plot` or `plot_pareto` and its flags. Every run is a process
//! of its own, so that a run that fails cannot take the sweep with it. What is overridden, how folders are
//! called and which loads are tried are pure functions; results are written whole or not at all, which is
//! what makes a sweep go on where it ended.

mod args;
mod combination;
mod csv;
mod experiment;
mod files;
mod flags;
mod ladder;
mod live;
mod params;
mod plots;
mod server;
mod setup;
mod words;
mod workload;

pub use args::{
    PlotCommand, PlotParetoCommand, ServeSweepArgs, ServeSweepCommand, ServeWorkloadCommand,
};
pub use flags::{
    SWEEP_PLOT_FLAGS, SWEEP_PLOT_PARETO_FLAGS, SWEEP_SERVE_FLAGS, SWEEP_SERVE_WORKLOAD_FLAGS,
};
pub use workload::WorkloadVariable;

pub(super) use server::url;
pub(super) use words::{quoted, split};

use super::plain;
use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use std::ffi::OsString;

const HELP: &str = "\
Runs a benchmark for each combination of settings of server and client, and plots them

Usage: bench-vllm sweep <COMMAND> [OPTIONS]

Commands:
  serve           Starts the server with each set of its settings, runs the client with each of its own
  serve_workload  The same, with loads between one request at a time and all at once
  plot            Curves of what sweeps measured
  plot_pareto     Tokens/s for each user against tokens/s of each GPU

Options:
      --help  This text; after a command, its flags";

/// Runs `bench-vllm sweep` with these arguments (without program and subcommand).
///
/// # Errors
///
/// A usage failure, files that cannot be used, a server or a run that failed, or output that cannot be
/// written.
pub fn sweep(
    mut arguments: Vec<OsString>,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let command = if arguments.is_empty() { OsString::new() } else { arguments.remove(0) };
    match command.to_str() {
        Some("serve") => {
            let command = read::<ServeSweepCommand>(arguments, "serve", SWEEP_SERVE_FLAGS, io)?;
            command.map_or(Ok(Code::Done), |command| {
                experiment::run(&command.args, None, environment, io)
            })
        }
        Some("serve_workload") => {
            let flags = SWEEP_SERVE_WORKLOAD_FLAGS;
            let command = read::<ServeWorkloadCommand>(arguments, "serve_workload", flags, io)?;
            let Some(ServeWorkloadCommand { args, workload_var, workload_iters }) = command else {
                return Ok(Code::Done);
            };
            experiment::run(&args, Some((workload_var, workload_iters)), environment, io)
        }
        Some("plot") => {
            let command = read::<PlotCommand>(arguments, "plot", SWEEP_PLOT_FLAGS, io)?;
            command.map_or(Ok(Code::Done), |command| plots::plot(&command, io))
        }
        Some("plot_pareto") => {
            let flags = SWEEP_PLOT_PARETO_FLAGS;
            let command = read::<PlotParetoCommand>(arguments, "plot_pareto", flags, io)?;
            command.map_or(Ok(Code::Done), |command| plots::plot_pareto(&command, io))
        }
        Some("--help" | "-h" | "help") => {
            io.print(HELP).or_code(Code::Output)?;
            Ok(Code::Done)
        }
        _ => Err(Failure::usage(format!(
            "no command of sweep is called `{}` (known: serve, serve_workload, plot, plot_pareto)",
            command.to_string_lossy()
        ))
        .hint("bench-vllm sweep --help lists what there is")),
    }
}

fn read<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    command: &str,
    flags: &[&str],
    io: &Io,
) -> Result<Option<A>, Failure> {
    parse_as(plain(arguments, flags, io)?, &format!("vllm bench sweep {command}"), flags, io)
}

/// Reads bytes from outside, for fuzzing: a file of parameters, applied to a command line.
#[doc(hidden)]
pub fn read_foreign_bytes(bytes: &[u8]) {
    let command = ["vllm".to_owned(), "--a".to_owned(), "1".to_owned()];
    for set in params::Overrides::read(bytes, "parameters").unwrap_or_default() {
        drop(set.apply(&command));
        drop(params::folder(&set, &set, None));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        drop(words::split(text, "--serve-cmd"));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        /// Any text, and any bytes, are read or refused.
        #[test]
        fn any_bytes_are_read_or_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            text in r#"[\[\]{}:,"' a-z0-9._\\-]{0,80}"#,
        ) {
            super::read_foreign_bytes(&bytes);
            super::read_foreign_bytes(text.as_bytes());
        }
    }
}
