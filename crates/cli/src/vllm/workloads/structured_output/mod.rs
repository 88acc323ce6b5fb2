//! `structured-output`: replies that must have a given form.

mod args;

pub use args::{STRUCTURED_OUTPUT_FLAGS, StructuredOutputArgs};

use self::args::{QuestionArgs, StructureType, StructuredBackend};
use super::super::args::{
    ContentArgs, VllmDatasetArgs, VllmLoadArgs, VllmReportArgs, VllmTargetArgs,
};
use super::super::beside::Around;
use super::super::offline::save;
use super::super::plan::SIMULATED;
use super::super::prepare::{prepare, request};
use super::super::result::Outcome;
use super::super::run::folder;
use super::super::sent::Sent;
use super::super::session::Session;
use super::super::{VllmPlan, VllmServeArgs, plain};
use crate::exit::OrCode;
use crate::prepare::Prepared;
use crate::{Code, Environment, Failure, Io, parse_as};
use clap::{CommandFactory, Parser};
use serde_json::{Map, Value, json};
use servebench_core::Sample;
use servebench_core::random::Draws;
use servebench_datasets::vllm::{StructuredKind, StructuredOptions, VllmDataset, load_structured};
use servebench_report::vllm::{
    Replies, VllmReport, check_folder, structured_file_name, structured_result, structured_table,
};
use servebench_run::Job;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::PoisonError;

const TOOL: &str = "benchmark_serving_structured_output.py";

/// Reads arguments (without program and subcommand) the way the Python script does.
///
/// # Errors
///
/// A usage failure whose message names the flag.
pub fn parse_structured_output<A: Parser + CommandFactory>(
    arguments: Vec<OsString>,
    io: &Io,
) -> Result<Option<A>, Failure> {
    let words = plain(arguments, STRUCTURED_OUTPUT_FLAGS, io)?;
    parse_as(words, TOOL, STRUCTURED_OUTPUT_FLAGS, io)
}

/// Sends prompts with constraints on their replies, prints the table, and says how many replies are right.
///
/// # Errors
///
/// What kept the run from being made or its result from being written.
pub fn structured_output(
    args: &StructuredOutputArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let own = options(&args.question, args.server.backend.unwrap_or_default())?;
    let plan = plan(args, own.clone(), environment)?;
    if args.own.dry_run {
        plan.print(io)?;
        return Ok(Code::Done);
    }
    if plan.report.writes() {
        check_folder(&folder(&plan)).or_code(Code::Output)?;
    }
    let session = Session::open(&plan, environment, io)?;
    let mut draws = Draws::new(plan.dataset.seed);
    io.say(format_args!("preparing requests ({})", own.kind.name()));
    let ticker = session.preparing();
    let (names, tokenizer) = (&session.names, session.tokenizer.as_ref());
    let loaded = load_structured(&own, &plan.dataset, tokenizer, Some(&session.hub), &mut draws);
    let loaded = loaded.or_code(Code::Data)?;
    for warning in &loaded.rows.warnings {
        io.say(warning);
    }
    let mut prepared = prepare(&plan, &names.served, loaded.rows, tokenizer, &mut draws)?;
    test_first(&mut prepared, &loaded.test);
    drop(ticker);

    let around = Around::new(&session, &prepared);
    let measured = session.measure(&prepared, Some(&around)).map_err(own_words)?;
    let state = around.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = Outcome {
        plan: &plan,
        names,
        sent: Sent::of(&plan, &prepared, 0, tokenizer),
        measured,
        workers: Some(session.workers(&prepared) as u64),
        interrupted: session.interrupts.code().is_some(),
        learned: state.into(),
        counts: None,
        window: None,
        extra: Map::new(),
    };
    let replies = Looked { own: &own, prepared: &prepared, expected: &loaded.expected };
    outcome.fold(tokenizer, Some(&session.interrupts), io, |mut report| {
        let (replies, found) = replies.at(&report);
        args.server.backend.unwrap_or_default().name.clone_into(&mut report.info.backend);
        report.info.own.insert("replies".to_owned(), found.json());
        let text = structured_table(&report, &replies);
        let printed = io.print(format_args!("{text}{}", found.line()));
        outcome.tell(io);
        if plan.report.save {
            let ratio = (!args.question.no_structured_output).then_some(own.ratio);
            let name = structured_file_name(&report.info, ratio, own.kind.name(), own.output_len);
            let name = plan.report.filename.clone().unwrap_or_else(|| name.into());
            let path = plan.report.dir.as_ref().map_or_else(|| name.clone(), |dir| dir.join(&name));
            write(&path, &Value::Object(structured_result(&report, &replies)), io)?;
        }
        printed.or_code(Code::Output)
    })
}

/// What is asked for, and of which requests.
fn options(args: &QuestionArgs, backend: StructuredBackend) -> Result<StructuredOptions, Failure> {
    let kind = StructuredKind::from_name(&args.dataset).unwrap_or_default();
    let useless = |flag: &str, only: &str| {
        let text = format!("{flag} is for --dataset {only}, not for {}", kind.name());
        Err(Failure::usage(text))
    };
    if args.json_schema_path.is_some() && !kind.takes_schema() {
        return useless("--json-schema-path", "json and json-unique");
    }
    if args.dataset_path.is_some() && kind != StructuredKind::XgrammarBench {
        return useless("--dataset-path", "xgrammar_bench");
    }
    if args.structure_type.is_some_and(|old| !old.is_of(kind)) {
        let text = format!("--structure-type is not that of --dataset {}", kind.name());
        return Err(Failure::usage(text).hint("leave it out: the dataset says it"));
    }
    Ok(StructuredOptions {
        kind,
        schema: args.json_schema_path.clone(),
        output_len: args.output_len,
        prefix_len: args.random_prefix_len,
        ratio: if args.no_structured_output { 0.0 } else { args.structured_output_ratio },
        salt: RandomState::new().build_hasher().finish(),
        messages: backend.protocol.is_templated_by_server(),
    })
}

fn plan(
    args: &StructuredOutputArgs,
    own: StructuredOptions,
    environment: &Environment,
) -> Result<VllmPlan, Failure> {
    let StructuredOutputArgs { server, question, pace, report, transport, own: client } =
        args.clone();
    let backend = server.backend.unwrap_or_default();
    let is_json = StructureType::Json.is_of(own.kind);
    let unsaid = if client.simulate { SIMULATED.0 } else { 1000 };
    let serve = VllmServeArgs {
        target: VllmTargetArgs {
            backend: Some(backend.protocol),
            base_url: server.base_url,
            host: server.host,
            port: server.port,
            endpoint: server.endpoint,
            header: server.header,
            insecure: server.insecure,
            model: server.model,
            served_model_name: server.served_model_name,
            tokenizer: server.tokenizer,
            tokenizer_mode: server.tokenizer_mode,
            trust_remote_code: server.trust_remote_code,
            ..VllmTargetArgs::default()
        },
        load: VllmLoadArgs {
            num_prompts: Some(question.num_prompts.map_or(unsaid, i64::from)),
            seed: Some(question.seed),
            request_rate: pace.request_rate,
            burstiness: pace.burstiness,
            max_concurrency: pace.max_concurrency,
            ready_check_timeout_sec: pace.ready_check_timeout_sec,
            num_warmups: Some(1),
            disable_tqdm: pace.disable_tqdm,
            profile: pace.profile,
            ..VllmLoadArgs::default()
        },
        content: ContentArgs { temperature: Some(0.0), ..ContentArgs::default() },
        dataset: VllmDatasetArgs::default(),
        report: VllmReportArgs {
            percentile_metrics: report.percentile_metrics,
            metric_percentiles: report.metric_percentiles,
            goodput: report.goodput,
            save_result: report.save_results,
            save_detailed: true,
            result_dir: report.result_dir,
            result_filename: report.result_filename,
            ..VllmReportArgs::default()
        },
        transport,
        own: client,
    };
    let mut plan = VllmPlan::new(serve, environment)?;
    plan.dataset.path = question.dataset_path;
    plan.dataset.dataset = VllmDataset::Structured(own);
    // Unlike for random data, a reply may end by itself.
    plan.ignore_eos = question.ignore_eos;
    plan.load.stretched = false;
    let constrained = !question.no_structured_output;
    if plan.run.simulate && constrained && !is_json {
        plan.run.warnings.push(
            "the simulated server heeds constraints of JSON alone, and of those no more than that"
                .to_owned(),
        );
    }
    if !backend.heeds && constrained {
        plan.run.warnings.push(format!(
            "structured_outputs is a field of vLLM's: a {} server may pass over it, which the replies tell",
            backend.name
        ));
    }
    Ok(plan)
}

/// Before the run goes one request, with its constraint and its whole reply.
fn test_first(prepared: &mut Prepared, test: &Sample) {
    let request = request(0, prepared.protocol.as_ref(), test, None);
    prepared.warmup = Job::burst(vec![request]);
    let is_first = prepared.samples.first().is_some_and(|first| first.prompt == test.prompt);
    prepared.warmup_prompts = if is_first { "row_0" } else { "separate" };
}

/// What is said of a test request that fails: there is no run without it.
fn own_words(mut failure: Failure) -> Failure {
    if let Some(hint) = &mut failure.hint
        && let Some(end) = hint.find("; without --num-warmups")
    {
        hint.truncate(end);
    }
    failure
}

/// What there is to look at in replies.
struct Looked<'a> {
    own: &'a StructuredOptions,
    prepared: &'a Prepared,
    expected: &'a [Option<String>],
}

/// How many replies there are of one sort, and how many of those are as they should be.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    replies: u64,
    correct: u64,
    whole: u64,
}

/// Replies to requests with and without the constraint.
struct Found {
    kind: StructuredKind,
    constrained: Count,
    free: Count,
}

impl Looked<'_> {
    fn at(&self, report: &VllmReport<'_>) -> (Replies, Found) {
        let kind = self.own.kind;
        let mut found = Found { kind, constrained: Count::default(), free: Count::default() };
        let mut replies = Replies::default();
        for request in report.requests {
            let place = request.record.id as usize;
            let text = &request.record.reply.text;
            let correct = kind.is_correct(text);
            replies.expected.push(self.expected.get(place).cloned().flatten());
            replies.correct.push(correct);
            if request.record.is_success() {
                let row = self.prepared.samples.get(place);
                let constrained = row.is_some_and(|row| !row.extra_body.is_empty());
                let count = if constrained { &mut found.constrained } else { &mut found.free };
                count.replies += 1;
                count.correct += u64::from(correct == Some(true));
                count.whole += u64::from(kind.is_whole(text));
            }
        }
        (replies, found)
    }
}

impl Found {
    fn json(&self) -> Value {
        let has_rule = self.kind.is_correct("").is_some();
        let count = |count: Count| {
            let correct = has_rule.then_some(count.correct);
            json!({"replies": count.replies, "correct": correct, "whole": count.whole})
        };
        json!({"constrained": count(self.constrained), "free": count(self.free)})
    }

    fn line(&self) -> String {
        let sorts = [(self.constrained, "with"), (self.free, "without")];
        let said: Vec<String> = sorts
            .into_iter()
            .filter(|(count, _)| count.replies > 0)
            .map(|(Count { replies, whole, .. }, which)| {
                format!("{whole} of {replies} replies {which} a constraint")
            })
            .collect();
        let said = if said.is_empty() { "no reply".to_owned() } else { said.join(", ") };
        format!("Wholly of the form asked for: {said}")
    }
}

/// Writes the result; what was measured is not lost to a path problem.
fn write(path: &Path, result: &Value, io: &Io) -> Result<(), Failure> {
    save(Some(path), result, io).map_err(|failure| match io.deliver(result) {
        Ok(()) => failure.hint("the result went to standard output instead"),
        Err(_) => failure.hint("standard output could not be written either"),
    })
}
