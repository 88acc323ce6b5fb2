//! Sends one prompt to a live LLM inference server and shows the reply with its timing.

mod args;

pub use args::Args;

use servebench_cli::send_one::{SEND_ONE_FLAGS, send_one};
use servebench_cli::{Code, Environment, Failure, Io, parse_as};
use std::ffi::OsString;

/// Runs the command with these arguments (without the program's name).
///
/// # Errors
///
/// A usage failure, a server that cannot be reached, or a request that failed.
pub fn run(arguments: Vec<OsString>, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    match parse_as::<Args>(arguments, "sglang.test.send_one", SEND_ONE_FLAGS, io)? {
        Some(args) => send_one(&args.all, environment, io),
        None => Ok(Code::Done),
    }
}
