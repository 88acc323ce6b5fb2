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
    let parsed = parse_as::<Args>(arguments, "sglang.bench_one_batch_server", ONE_BATCH_FLAGS, io);
    match parsed.map_err(hinted)? {
        Some(args) => one_batch(args.all, environment, io),
        None => Ok(Code::Done),
    }
}

/// The Python tool takes every flag of its server too.
fn hinted(failure: Failure) -> Failure {
    let text = failure.error.to_string();
    if text.contains("unexpected argument '--") && failure.hint.is_none() {
        failure.hint(
            "flags of SGLang's launch_server are not taken here: they go into the command of --launch, \
             as in --launch 'python -m sglang.launch_server --model-path MODEL --tp-size 2'",
        )
    } else {
        failure
    }
}
