//! Measures LLM inference servers: flags, table and result of vllm bench, and more.

mod hash;
mod multi_turn;
mod offline;
mod serve;
mod startup;
mod structured;
mod workloads;

pub use hash::{HashCommand, PrefixBlockHashCommand};
pub use multi_turn::{ConvertShareGptCommand, MultiTurnCommand};
pub use offline::{LatencyCommand, ThroughputCommand};
pub use serve::{AnalyzeCommand, ReplayCommand, ServeArgs};
pub use startup::StartupCommand;
pub use structured::StructuredOutputCommand;
pub use workloads::{LongDocumentQaCommand, PrefixCachingCommand, PrioritizationCommand};

use clap::{CommandFactory, Parser};
use servebench_cli::hash::{self as hashes, BLOCK_HASH_FLAGS, HASH_FLAGS};
use servebench_cli::vllm::args::VLLM_FLAGS;
use servebench_cli::vllm::sweep::sweep;
use servebench_cli::vllm::{
    VllmPlan, analyze, convert_sharegpt, latency, long_document_qa, multi_turn,
    parse_convert_sharegpt, parse_latency, parse_long_document_qa, parse_multi_turn,
    parse_prefix_caching, parse_prioritization, parse_serve, parse_startup,
    parse_structured_output, parse_throughput, plain, prefix_caching, prioritization, replay,
    serve, startup as measure_startup, structured_output, throughput,
};
use servebench_cli::{Code, Environment, Failure, Io, parse_as};
use std::ffi::OsString;

const HELP: &str = "\
Measures LLM inference servers: flags, table and result of vllm bench, and more

Usage: bench-vllm <COMMAND> [OPTIONS]

Commands:
  serve              Sends requests to a running server and reports latencies and throughput
  analyze            Makes table and result of a run of serve from its raw log; no server
  replay             Makes them from its recording, or shows what a request received; no server
  throughput         Sends all requests at once: requests and tokens per second
  latency            Sends whole batches one after the other: how long each takes
  long-document-qa   Sends the same long prompts again and again: how long all take
  prefix-caching     Sends prompts that share a beginning or come again: what the server's cache spares
  prioritization     Sends requests of two priorities: what each of them waits
  structured-output  Sends prompts whose replies must have a form: speed, and how many have it
  startup            Starts a server again and again: how long until it is ready
  multi-turn         Has conversations with a server: latencies turn by turn
  convert-sharegpt   Writes a ShareGPT file in the form that multi-turn reads; no server
  sweep              Runs serve over many settings of server and client, and plots them
  hash               Times the hash functions of a prefix cache; no server
  prefix-block-hash  Times chains of block hashes; no server

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
        Some("analyze") => run_analyze(arguments, environment, io),
        Some("replay") => run_replay(arguments, environment, io),
        Some("throughput") => {
            let parsed = parse_throughput::<ThroughputCommand>(arguments, io)?;
            parsed.map_or(Ok(Code::Done), |command| throughput(command.args, environment, io))
        }
        Some("latency") => {
            let parsed = parse_latency::<LatencyCommand>(arguments, io)?;
            parsed.map_or(Ok(Code::Done), |command| latency(command.args, environment, io))
        }
        Some("long-document-qa") => {
            let parsed = parse_long_document_qa::<LongDocumentQaCommand>(arguments, io)?;
            parsed
                .map_or(Ok(Code::Done), |command| long_document_qa(&command.args, environment, io))
        }
        Some("prefix-caching") => {
            let parsed = parse_prefix_caching::<PrefixCachingCommand>(arguments, io)?;
            parsed.map_or(Ok(Code::Done), |command| prefix_caching(&command.args, environment, io))
        }
        Some("prioritization") => {
            let parsed = parse_prioritization::<PrioritizationCommand>(arguments, io)?;
            parsed.map_or(Ok(Code::Done), |command| prioritization(&command.args, environment, io))
        }
        Some("structured-output") => {
            let parsed = parse_structured_output::<StructuredOutputCommand>(arguments, io)?;
            parsed
                .map_or(Ok(Code::Done), |command| structured_output(&command.args, environment, io))
        }
        Some("startup") => {
            let parsed = parse_startup::<StartupCommand>(arguments, io)?;
            parsed.map_or(Ok(Code::Done), |(command, engine)| {
                measure_startup(&command.args, &engine, environment, io)
            })
        }
        Some("mm-processor") => Err(Failure::usage(
            "mm-processor is not built here yet: its timers are inside of the engine, which no server tells",
        )
        .hint("serve --dataset-name random-mm measures requests with images as a whole")),
        Some("multi-turn") => {
            let parsed = parse_multi_turn::<MultiTurnCommand>(arguments, io)?;
            parsed.map_or(Ok(Code::Done), |command| multi_turn(&command.args, environment, io))
        }
        Some("convert-sharegpt") => {
            let parsed = parse_convert_sharegpt::<ConvertShareGptCommand>(arguments, io)?;
            parsed
                .map_or(Ok(Code::Done), |command| convert_sharegpt(&command.args, environment, io))
        }
        Some("sweep") => sweep(arguments, environment, io),
        Some("hash") => run_hash(arguments, io),
        Some("prefix-block-hash") => run_prefix_block_hash(arguments, io),
        Some("--help" | "-h" | "help") => say(HELP),
        Some("--version" | "-V") => say(concat!("bench-vllm ", env!("CARGO_PKG_VERSION"))),
        _ => Err(Failure::usage(format!(
            "no command is called `{}` (known: serve, analyze, replay, throughput, latency, long-document-qa, \
             prefix-caching, prioritization, structured-output, multi-turn, convert-sharegpt, startup, \
             sweep, hash, prefix-block-hash)",
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
    let Some((args, logged)) = parse_serve::<ServeArgs>(arguments, io)? else {
        return Ok(Code::Done);
    };
    let dry_run = args.is_dry_run();
    let (log, record) = (args.log.clone(), args.record.clone());
    let plan = VllmPlan::new(args.into(), environment)?.kept(log, record, logged);
    if dry_run {
        plan.print(io)?;
        return Ok(Code::Done);
    }
    serve(&plan, environment, io)
}

fn run_analyze(
    arguments: Vec<OsString>,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let parsed = parse_past::<AnalyzeCommand>(arguments, io)?;
    parsed.map_or(Ok(Code::Done), |command| analyze::<ServeArgs>(&command.args, environment, io))
}

fn run_replay(
    arguments: Vec<OsString>,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let parsed = parse_past::<ReplayCommand>(arguments, io)?;
    parsed.map_or(Ok(Code::Done), |command| replay::<ServeArgs>(&command.args, environment, io))
}

/// Reads the arguments of a command that looks at a run again.
fn parse_past<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    parse_as(plain(arguments, VLLM_FLAGS, io)?, "vllm bench serve", &[], io)
}

fn run_hash(arguments: Vec<OsString>, io: &Io) -> Result<Code, Failure> {
    let parsed = parse_as::<HashCommand>(arguments, "benchmark_hash.py", HASH_FLAGS, io)?;
    parsed.map_or(Ok(Code::Done), |command| hashes::hash(&command.args, io))
}

fn run_prefix_block_hash(arguments: Vec<OsString>, io: &Io) -> Result<Code, Failure> {
    let (tool, flags) = ("benchmark_prefix_block_hash.py", BLOCK_HASH_FLAGS);
    let parsed = parse_as::<PrefixBlockHashCommand>(arguments, tool, flags, io)?;
    parsed.map_or(Ok(Code::Done), |command| hashes::prefix_block_hash(&command.args, io))
}
