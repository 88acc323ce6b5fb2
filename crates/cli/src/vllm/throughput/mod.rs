//! `throughput`: all requests at once, and how long they take.

mod args;

pub use args::{THROUGHPUT_FLAGS, ThroughputArgs};

use super::offline::{OVER_HTTP, Pass, check, save, without_engine};
use super::prepare::prepare;
use super::session::Session;
use super::{VllmPlan, beside::Around, plain};
use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use serde_json::json;
use servebench_core::random::Draws;
use std::ffi::OsString;

const TOOL: &str = "vllm bench throughput";

/// Reads arguments (without program and subcommand) the way `vllm bench throughput` does.
///
/// # Errors
///
/// A usage failure whose message names the flag: also for flags of the engine, which the server has.
pub fn parse_throughput<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    let words = plain(arguments, THROUGHPUT_FLAGS)?;
    let words = without_engine(words, TOOL, THROUGHPUT_FLAGS, args::REFUSED)?;
    parse_as(words, TOOL, THROUGHPUT_FLAGS, io)
}

/// Sends all requests at once and prints requests and tokens per second.
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn throughput(
    args: ThroughputArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let (path, dry_run) = (args.offline.output_json.clone(), args.own.dry_run);
    let plan = VllmPlan::new(args.into(), environment)?;
    if plan.backend.info().pooling {
        let text = format!("--backend {} makes no tokens: use serve", plan.backend);
        return Err(Failure::usage(text));
    }
    if dry_run {
        plan.print(io)?;
        return Ok(Code::Done);
    }
    check(path.as_deref())?;
    let session = Session::open(&plan, environment, io)?;
    let mut draws = Draws::new(plan.dataset.seed);
    io.say(format_args!("preparing requests ({})", plan.dataset.dataset.name()));
    let ticker = session.preparing();
    let loaded = session.load(&mut draws)?;
    let (names, tokenizer) = (&session.names, session.tokenizer.as_ref());
    let prepared = prepare(&plan, &names.served, loaded, tokenizer, &mut draws)?;
    drop(ticker);
    let around = Around::new(&session, &prepared);
    let pass = Pass::run(&session, &prepared, Some(&around))?;

    let total = pass.prompt_tokens + pass.output_tokens;
    let requests = pass.per_second(pass.completed as f64);
    let tokens = pass.per_second(total as f64);
    let outputs = pass.per_second(pass.output_tokens as f64);
    let printed = io.print(format_args!(
        "Throughput: {requests:.2} requests/s, {tokens:.2} total tokens/s, \
         {outputs:.2} output tokens/s\n\
         Total num prompt tokens:  {}\n\
         Total num output tokens:  {}\n\
         {OVER_HTTP}",
        pass.prompt_tokens, pass.output_tokens
    ));
    let result = json!({
        "model_id": names.model,
        "elapsed_time": pass.seconds,
        "num_requests": pass.completed,
        "total_num_tokens": total,
        "requests_per_second": requests,
        "tokens_per_second": tokens,
        "servebench": pass.own(&session),
    });
    save(path.as_deref(), &result, io)?;
    printed.or_code(Code::Output)?;
    Ok(pass.code(&session))
}
