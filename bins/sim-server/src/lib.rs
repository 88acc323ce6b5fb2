//! A simulated LLM inference server as a process, for testing clients and benchmarks.
//!
//! All behaviour is `servebench-sim`'s; this crate reads flags and files, listens, and leaves on a
//! signal. [`run`] is the whole program, callable from tests.

mod args;
mod serve;
mod setup;

pub use args::{Args, Count, Text};
pub use setup::configuration;

use clap::Parser;
use std::ffi::OsString;
use std::io::Write;

/// What the process says by its exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Stopped = 0,
    Usage = 2,
    BadFile = 3,
    CannotListen = 4,
    LogNotWritten = 7,
}

/// Runs the program with these arguments, the first of which is its name, until it is told to
/// stop; returns the exit status.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let args = match Args::try_parse_from(arguments) {
        Ok(args) => args,
        Err(error) => {
            // Nobody is left to tell where the text cannot be written.
            let text = error.render();
            if error.use_stderr() {
                drop(write!(err, "{text}"));
                return Exit::Usage as u8;
            }
            drop(write!(out, "{text}"));
            return Exit::Stopped as u8;
        }
    };
    let ended = configuration(&args)
        .map_err(|error| (Exit::BadFile, error))
        .and_then(|config| serve::serve(&args, config, out));
    match ended {
        Ok(()) => Exit::Stopped as u8,
        Err((exit, error)) => {
            drop(writeln!(err, "error: {error}"));
            for cause in error.chain().skip(1) {
                drop(writeln!(err, "  caused by: {cause}"));
            }
            exit as u8
        }
    }
}
