//! The repository's own commands: ci, tidy, gen, golden, bench, live, fuzz, package, smoke.
//!
//! `cargo xtask COMMAND --help` explains each one. A command that a crate could own does not
//! belong here.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a developer's program: it prints, waits, reads the environment and the wall clock"
)]

mod busy;
mod ceiling;
mod ci;
mod count;
mod generate;
mod live;
mod package;
mod rig;
mod server;
mod shell;
mod smoke;
mod soak;
mod tidy;
mod tools;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Commands for working on servebench.
#[derive(Parser, Debug)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run every check that CI runs, cheapest first
    Ci(ci::Arguments),
    /// Check crate edges, crate documents, links, file lengths, paths and stubs
    Tidy,
    /// Write the generated pages of docs/src/reference
    Gen(generate::Arguments),
    /// Make the golden files anew with the Python tools' own generators
    Golden(tools::Golden),
    /// Run the benches, or compare the client with its peers (`bench ceiling`, `bench busy`), or count
    /// instructions (`bench count`)
    Bench(Box<tools::Bench>),
    /// Measure a real server on CPU with the release build
    Live(live::Arguments),
    /// Run one fuzz target for a while (needs cargo-fuzz and a nightly toolchain)
    Fuzz(tools::Fuzz),
    /// Package every library crate as for publishing
    Package(package::Arguments),
    /// Take a core for a while, again and again
    #[command(hide = true)]
    Spin(busy::Spin),
    /// Run the README's first command and look at what it left
    Smoke,
    /// Send a million requests to the simulated server, 1 % of which meet each fault, and account for each
    Soak(soak::Arguments),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> anyhow::Result<()> {
    match command {
        Command::Ci(arguments) => ci::run(arguments),
        Command::Tidy => tidy::run(),
        Command::Gen(arguments) => generate::run(arguments),
        Command::Golden(arguments) => tools::golden(arguments),
        Command::Bench(arguments) => tools::bench(arguments),
        Command::Live(arguments) => live::run(arguments),
        Command::Fuzz(arguments) => tools::fuzz(arguments),
        Command::Package(arguments) => package::run(arguments),
        Command::Spin(arguments) => busy::spin(arguments),
        Command::Smoke => smoke::run(),
        Command::Soak(arguments) => soak::run(arguments),
    }
}
