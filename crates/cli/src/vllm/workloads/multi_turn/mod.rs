//! `multi-turn`: clients that talk with the server, each turn after the reply to the one before it.

mod args;
mod convert;
mod options;
mod outcome;
mod statistics;
mod talks;

pub use args::{
    ConversationSampling, MULTI_TURN_FLAGS, MultiTurnArgs, MultiTurnLoadArgs, MultiTurnReportArgs,
    MultiTurnTargetArgs,
};

pub use convert::{
    CONVERT_SHAREGPT_FLAGS, ConvertShareGptArgs, convert_sharegpt, parse_convert_sharegpt,
};

use self::options::MultiTurnPlan;
use self::outcome::Outcome;
use self::talks::{Maker, Talk, sent};
use super::super::args::{ContentArgs, VllmLoadArgs, VllmTargetArgs};
use super::super::offline::{OfflineArgs, Pass, Workload, check};
use super::super::session::Session;
use super::super::{VllmPlan, beside::Around, plain};
use crate::exit::OrCode;
use crate::hidden::Hidden;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use serde_json::{Value, json};
use servebench_backends::vllm::VllmOptions;
use servebench_datasets::vllm::{
    GeneratorConfig, LengthDistribution, MultiTurnInput, generate_multi_turn, load_multi_turn,
};
use servebench_tokens::Tokenizer;
use std::ffi::OsString;

const TOOL: &str = "benchmark_serving_multi_turn.py";
/// Where a server is, if nothing is said.
const URL: &str = "http://localhost:8000";

/// Reads arguments (without program and subcommand) the way the Python script does.
///
/// # Errors
///
/// A usage failure whose message names the flag.
pub fn parse_multi_turn<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    let words = args::long_words(plain(arguments, MULTI_TURN_FLAGS, io)?)?;
    parse_as(words, TOOL, MULTI_TURN_FLAGS, io)
}

/// Has conversations with a server, and prints the tables of the Python script and our own.
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn multi_turn(
    args: &MultiTurnArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let own = MultiTurnPlan::new(args, environment)?;
    if args.target.input_file.is_none() && !args.own.simulate {
        let text = "--input-file is needed: conversations, or what they are made from";
        return Err(Failure::usage(text).hint("--simulate needs none"));
    }
    let mut plan = plan(args, &own, environment)?;
    if args.own.dry_run {
        let text = serde_json::to_string_pretty(&shown(&plan, &own)).or_code(Code::Bug)?;
        io.print(text).or_code(Code::Output)?;
        return Ok(Code::Done);
    }
    let report = &args.report;
    for path in [&report.output_file, &report.stats_json_output, &args.around.output_json] {
        check(path.as_deref())?;
    }
    plan.run.report.print_requests = report.verbose;
    let session = Session::open(&plan, environment, io).map_err(|failure| {
        // There is no way to do without.
        let own = |hint: String| hint.replace("; --skip-tokenizer-init does without", "");
        Failure { hint: failure.hint.map(own), ..failure }
    })?;
    talk(args, &own, session)
}

fn talk(args: &MultiTurnArgs, own: &MultiTurnPlan, session: Session<'_>) -> Result<Code, Failure> {
    let io = session.io;
    let Some(tokenizer) = session.tokenizer.clone() else {
        return Err(Failure::usage("no tokenizer: nothing can be counted"));
    };
    introduce(&session);
    let ticker = session.preparing();
    let input = load(args, own.seed, &tokenizer)?;
    own.fit(input.conversations.len())?;
    io.say(format_args!("{} conversations", input.conversations.len()));
    let MultiTurnInput { conversations, generator } = input;
    if generator.as_ref().is_none_or(|generator| generator.print_stats) {
        let table = outcome::about(&conversations, generator.is_some(), &tokenizer);
        io.print(table.or_code(Code::Data)?).or_code(Code::Output)?;
    }
    let mut talks = Talk::all(conversations, own, &tokenizer).or_code(Code::Data)?;
    drop(ticker);
    let mut plan = session.plan.clone();
    plan.run.limits.request_timeout_s = Some(own.timeout(&talks));
    let session = &session.with_plan(&plan);

    let backend = session.plan.backend;
    let options = VllmOptions { model: session.names.served.clone(), ..VllmOptions::default() };
    let protocol = backend.protocol(&session.plan.endpoint, options);
    let maker = Maker { plan: own, protocol: &protocol, model: &session.names.served };
    let warmup_seconds = if own.warmup_step { warm_up(session, &maker, &mut talks)? } else { None };
    let prepared = maker.measured(&talks);
    let around = Around::new(session, &prepared);
    let pass = Pass::run(session, &prepared, Some(&around))?;
    let records = &pass.measured.finished.records;
    let sent = sent(&talks, &prepared.job, records);
    for turn in &sent {
        let talk = &mut talks[turn.talk];
        if turn.record.is_success() {
            talk.answer(turn.turn, &turn.record.reply.text);
            talk.finished = turn.turn + 1 == talk.turns();
        }
    }
    let outcome = Outcome {
        args,
        own,
        session,
        pass: &pass,
        talks: &talks,
        sent: &sent,
        job: &prepared.job,
        generator: generator.as_ref(),
        warmup_seconds,
        tokenizer: &tokenizer,
        sha256: &prepared.sha256,
    };
    outcome.report()
}

/// Sends the first message of each conversation, and leaves those out that are not answered or over. Says
/// how long it took.
fn warm_up(
    session: &Session<'_>,
    maker: &Maker<'_>,
    talks: &mut Vec<Talk>,
) -> Result<Option<f64>, Failure> {
    let io = session.io;
    io.say("warm-up: the first message of every conversation");
    let prepared = maker.warm_up(talks);
    let pass = Pass::run(session, &prepared, None)?;
    let records = &pass.measured.finished.records;
    for turn in sent(talks, &prepared.job, records) {
        if turn.record.is_success() {
            talks[turn.talk].answer(0, &turn.record.reply.text);
            talks[turn.talk].skipped = 1;
        }
    }
    let all = talks.len();
    talks.retain(|talk| talk.skipped == 1 && talk.turns() > 1);
    if talks.len() < all {
        io.say(format_args!("{} conversations have nothing more to say", all - talks.len()));
    }
    if talks.is_empty() {
        let failure = records.iter().find_map(|record| record.reply.failure.as_ref());
        let error = match failure {
            Some(failure) => anyhow::anyhow!("the warm-up failed: {failure}"),
            None => anyhow::anyhow!("after --warmup-step nothing is left to be measured"),
        };
        let code = if failure.is_some() { Code::Server } else { Code::Data };
        return Err(Failure::new(code, error));
    }
    Ok(Some(pass.seconds))
}

/// What the server says of itself.
fn introduce(session: &Session<'_>) {
    let io = session.io;
    if let Some(version) = session.ask("/version") {
        io.say(format_args!("server version: {version}"));
    }
    let models = session.ask("/v1/models").unwrap_or_default();
    for model in models["data"].as_array().into_iter().flatten() {
        let id = model["id"].as_str().unwrap_or_default();
        match model.get("max_model_len").and_then(Value::as_u64) {
            Some(length) => io.say(format_args!("server model: {id}, {length} tokens at most")),
            None => io.say(format_args!("server model: {id}")),
        }
    }
}

/// The conversations of the file; without one, some that are made up.
fn load(args: &MultiTurnArgs, seed: u32, tokenizer: &Tokenizer) -> Result<MultiTurnInput, Failure> {
    if let Some(path) = &args.target.input_file {
        return load_multi_turn(path, tokenizer, seed).or_code(Code::Data);
    }
    let between = |min, max| LengthDistribution::Uniform { min, max, whole: true };
    let config = GeneratorConfig {
        num_conversations: 24,
        text_files: Vec::new(),
        print_stats: false,
        num_turns: between(4.0, 8.0),
        common_prefix_num_tokens: LengthDistribution::Constant { value: 100.0 },
        prefix_num_tokens: between(100.0, 300.0),
        num_tokens: between(100.0, 200.0),
        output_num_tokens: between(20.0, 40.0),
    };
    let line = |number: u32| format!("Line {number} of a text that nobody has to read. ");
    let text: String = (1..=1000).map(line).collect();
    let conversations = generate_multi_turn(&config, &text, tokenizer, seed).or_code(Code::Data)?;
    Ok(MultiTurnInput { conversations, generator: Some(config) })
}

/// What is to be known of the plan: not what only `serve` does.
fn shown(plan: &VllmPlan, own: &MultiTurnPlan) -> Value {
    json!({
        "backend": plan.backend.name(),
        "endpoint": plan.endpoint,
        "base_url": plan.base_url,
        "model": plan.model,
        "served_model_name": plan.served_model_name,
        "header_names": plan.run.header_names,
        "limits": plan.run.limits,
        "multi_turn": own,
    })
}

/// The run of `serve` that is closest.
fn plan(
    args: &MultiTurnArgs,
    own: &MultiTurnPlan,
    environment: &Environment,
) -> Result<VllmPlan, Failure> {
    let target = &args.target;
    let mut header = target.header.clone();
    if let Some(key) = &target.api_key {
        // The key wins over a header, as in the script.
        header.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        header.push(("Authorization".to_owned(), Hidden(format!("Bearer {}", key.0))));
    }
    let url = target.url.as_deref().unwrap_or(URL).trim_end_matches('/').to_owned();
    let serve = VllmTargetArgs {
        backend: "openai-chat".parse().ok(),
        base_url: (!args.own.simulate).then_some(url),
        model: target.model.clone(),
        served_model_name: target.served_model_name.clone(),
        tokenizer: target.tokenizer.clone(),
        header,
        insecure: target.insecure,
        trust_remote_code: target.trust_remote_code,
        ..VllmTargetArgs::default()
    };
    let offline = OfflineArgs {
        target: serve,
        around: args.around.clone(),
        transport: args.transport.clone(),
        own: args.own.clone(),
    };
    let cap = i64::try_from(own.num_clients).ok();
    let load = VllmLoadArgs { max_concurrency: cap, ..VllmLoadArgs::default() };
    let content = ContentArgs { temperature: Some(0.0), ..ContentArgs::default() };
    offline.plan(Workload { load, content, ..Workload::default() }, environment)
}
