//! Sends whole batches of prompts to an LLM inference server and measures each.

mod args;

pub use args::Args;

use servebench_cli::one_batch::{ONE_BATCH_FLAGS, one_batch};
use servebench_cli::{Code, Environment, Failure, Io, parse_as};
use std::ffi::OsString;

/// Runs the command with these arguments (without the program's name).
///
/// # Errors
///
/// A usage failure, data that cannot be used, a server that cannot be reached or refuses, a batch that
/// failed, or output that cannot be written.
pub fn run(arguments: Vec<OsString>, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    let arguments = with_words(arguments);
    match parse_as::<Args>(arguments, "sglang.bench_one_batch_server", ONE_BATCH_FLAGS, io)? {
        Some(args) => one_batch(args.all, environment, io),
        None => Ok(Code::Done),
    }
}

/// The flag whose first word may look like a flag.
const WORDS: &str = "--server-args-for-metrics";

/// Python's parser takes a word with a space in it for a value, whatever it begins with: a server's
/// flags in one word are handed on to the flag that they are meant for.
fn with_words(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut plain: Vec<OsString> = Vec::new();
    for argument in arguments {
        let is_text =
            argument.to_str().is_some_and(|word| word.starts_with('-') && word.contains(' '));
        match plain.last_mut().filter(|last| is_text && *last == WORDS) {
            Some(last) => {
                last.push("=");
                last.push(&argument);
            }
            None => plain.push(argument),
        }
    }
    plain
}
