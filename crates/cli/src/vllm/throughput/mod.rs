//! `throughput`: all requests at once, and how long they take.

mod args;

pub use args::{THROUGHPUT_FLAGS, ThroughputArgs};

use super::offline::{Figures, Pass, of_a_server};
use super::prepare::prepare;
use super::{beside::Around, plain};
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use serde_json::json;
use servebench_core::random::Draws;
use std::ffi::OsString;

const TOOL: &str = "vllm bench throughput";
const FIGURES: Figures = Figures {
    metrics: &[
        ("requests_per_second", "requests_per_second"),
        ("tokens_per_second", "tokens_per_second"),
    ],
    further: &["elapsed_time", "num_requests", "total_num_tokens"],
};

/// Reads arguments (without program and subcommand) the way `vllm bench throughput` does.
///
/// # Errors
///
/// A usage failure whose message names the flag: also for flags of the engine, which the server has.
pub fn parse_throughput<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    let words = of_a_server(plain(arguments, THROUGHPUT_FLAGS, io)?, TOOL, THROUGHPUT_FLAGS)?;
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
    let (workload, outcome) = (args.workload(), args.offline.outcome());
    let outcome = outcome.recorded(FIGURES, environment);
    let plan = args.offline.plan(workload, environment)?;
    let Some(session) = outcome.begin(&plan, environment, io)? else { return Ok(Code::Done) };
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
    let lines = format!(
        "Throughput: {requests:.2} requests/s, {tokens:.2} total tokens/s, \
         {outputs:.2} output tokens/s\n\
         Total num prompt tokens:  {}\n\
         Total num output tokens:  {}",
        pass.prompt_tokens, pass.output_tokens
    );
    let result = json!({
        "model_id": names.model,
        "elapsed_time": pass.seconds,
        "num_requests": pass.completed,
        "total_num_tokens": total,
        "requests_per_second": requests,
        "tokens_per_second": tokens,
    });
    outcome.end(&session, &pass, lines, result)
}
