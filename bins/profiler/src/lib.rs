//! Profiles live LLM inference servers: starts, waits, stops, lists traces, flushes caches.

mod args;

pub use args::{FlushCache, Profile, ServerInfo, Start, Stop};

use clap::{CommandFactory, Parser};
use servebench_cli::profiler::{self, PROFILER_FLAGS};
use servebench_cli::{Code, Environment, Failure, Io, parse_as};
use std::ffi::OsString;

/// Runs the command with these arguments (without the program's name). A subcommand is known as the
/// first word only.
///
/// # Errors
///
/// A usage failure, or a server that cannot be reached or refuses.
pub fn run(arguments: Vec<OsString>, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    let first = arguments.first().and_then(|word| word.to_str()).unwrap_or_default();
    let rest = || arguments.get(1..).unwrap_or_default().to_vec();
    match first {
        "start" => match read::<Start>(rest(), io)? {
            Some(args) => profiler::start(&args.servers, &args.what, environment, io),
            None => Ok(Code::Done),
        },
        "stop" => match read::<Stop>(rest(), io)? {
            Some(args) => profiler::stop(&args.servers, environment, io),
            None => Ok(Code::Done),
        },
        "flush-cache" => match read::<FlushCache>(rest(), io)? {
            Some(args) => profiler::flush_cache(&args.servers, &args.flush, environment, io),
            None => Ok(Code::Done),
        },
        "server-info" => match read::<ServerInfo>(rest(), io)? {
            Some(args) => profiler::server_info(&args.servers, environment, io),
            None => Ok(Code::Done),
        },
        _ => match read::<Profile>(arguments, io)? {
            Some(args) => {
                profiler::profile(&args.servers, &args.what, &args.length, environment, io)
            }
            None => Ok(Code::Done),
        },
    }
}

fn read<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    parse_as(arguments, "sglang.profiler", PROFILER_FLAGS, io)
}
