//! Table and result of a run from its raw log.

use crate::args::AnalyzeArgs;
use crate::exit::OrCode;
use crate::prepare::Prepared;
use crate::raw_log::{self, History, Metadata, Whole};
use crate::resume::part_keys;
use crate::serve::{Outcome, hub};
use crate::{Code, Environment, Failure, Io, Plan, ServingArgs, names};
use clap::{CommandFactory, Parser};
use serde_json::{Value, json};
use servebench_backends::GenerateOptions;
use servebench_core::{Record, Stamp};
use servebench_journal::records::{Counted, RecordLog};
use servebench_report::check_writable;
use servebench_run::Job;
use servebench_tokens::Tokenizer;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Reports the run whose raw log is named, with what `args` ask for in place of what the run had.
///
/// `A` is the command line of the run.
///
/// # Errors
///
/// When the log cannot be read or the result not be written.
pub fn analyze<A: Parser + CommandFactory + Into<ServingArgs>>(
    args: &AnalyzeArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    if let Some(output) = &args.output_file {
        check_writable(output).or_code(Code::Output)?;
    }
    report::<A>(raw_log::open(&args.file)?, args, environment, io)
}

/// Reports the run of a log, as [`analyze`] does.
pub(crate) fn report<A: Parser + CommandFactory + Into<ServingArgs>>(
    log: RecordLog,
    args: &AnalyzeArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let window = Window::of(args)?;
    let History { metadata, parts, mut counts } = History::of(log, &args.file, io)?;
    let plan = plan::<A>(&metadata, args, environment)?;
    let (requests, samples) = metadata.outline();
    let job = Job::burst(requests);
    let Whole { mut run, workers, interrupted, parts, ends } = Whole::of(parts, job.total());
    let records = &mut run.finished.records;
    let counted = recall(records, &mut counts);
    let tokenizer = match counted {
        Some(_) => None,
        None => tokenizer(&metadata, args, environment, io),
    };
    let mut extra = part_keys(parts);
    extra.insert("plan".into(), metadata.plan.clone());
    if let Some(window) = window {
        extra.insert("window".into(), window.json());
    }
    let (records, counted) = chosen(window, std::mem::take(records), counted, &ends);
    run.finished.records = records;
    let end = run.finished.end;
    let prepared = Prepared {
        job,
        warmup: Job::burst(Vec::new()),
        warmup_prompts: warmup_prompts(&metadata.warmup_prompts),
        protocol: plan.backend.protocol(GenerateOptions::default()),
        samples: samples.into(),
        sha256: metadata.plan_sha256.clone(),
    };
    let outcome = Outcome {
        plan: &plan,
        model: &metadata.names(),
        prepared: &prepared,
        measured: run,
        workers,
        interrupted,
        counts: counted,
        window: window.map(|window| window.seconds(end)),
        percentiles: &args.percentiles,
        extra,
        log: None,
        recording: None,
    };
    outcome.report(tokenizer.as_ref(), args.output_file.as_deref(), None, io)
}

/// Where the prompts of a warm-up came from, of the ways there are.
fn warmup_prompts(name: &str) -> &'static str {
    ["row_0", "separate"].into_iter().find(|known| *known == name).unwrap_or("none")
}

/// The plan of the run, as its command line said, but for what is reported.
fn plan<A: Parser + CommandFactory + Into<ServingArgs>>(
    metadata: &Metadata,
    args: &AnalyzeArgs,
    environment: &Environment,
) -> Result<Plan, Failure> {
    let command = A::command();
    let name = OsString::from(command.get_name());
    let words = metadata.arguments.iter().map(OsString::from);
    let parsed = A::try_parse_from(std::iter::once(name).chain(words)).map_err(|error| {
        let error = anyhow::anyhow!("the log's command line is not understood: {error}");
        Failure::new(Code::Data, error).hint("it was written by another version of this program")
    })?;
    let mut plan = Plan::new(parsed.into(), environment)?;
    let report = &mut plan.report;
    // The run has written its own.
    report.steady_state_output_file = None;
    report.output_details |= args.output_details;
    report.plot_throughput |= args.plot_throughput;
    let ratio = args.steady_state_concurrency_ratio;
    report.steady_state_concurrency_ratio = ratio.or(report.steady_state_concurrency_ratio);
    if args.tag.is_some() {
        report.tag.clone_from(&args.tag);
    }
    if !args.goodput.is_empty() {
        report.goodput.clone_from(&args.goodput);
    }
    Ok(plan)
}

/// What was counted when the run was over, record by record; `None` where it was not.
fn recall(records: &mut [Record], counts: &mut BTreeMap<u64, Counted>) -> Option<Vec<Counted>> {
    if !records.iter().all(|record| counts.contains_key(&record.id)) {
        return None;
    }
    let recall = |record: &mut Record| {
        let counted = counts.remove(&record.id)?;
        record.prompt_len = counted.prompt_len;
        Some(counted)
    };
    records.iter_mut().map(recall).collect()
}

/// The tokenizer of a run that was cut before its replies were counted, if it is there.
fn tokenizer(
    metadata: &Metadata,
    args: &AnalyzeArgs,
    environment: &Environment,
    io: &Io,
) -> Option<Tokenizer> {
    let Some(name) = args.tokenizer.as_ref().or(metadata.tokenizer.as_ref()) else {
        return Some(Tokenizer::byte_level());
    };
    let loaded = names::load(name, &hub(environment, io), environment);
    loaded
        .inspect_err(|failure| {
            io.say(format_args!(
                "warning: replies are not counted again: {}; --tokenizer names another one",
                failure.error
            ));
        })
        .ok()
}

/// The part of a run that is reported, in seconds of the run.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: f64,
    to: Option<f64>,
}

impl Window {
    /// `None`: all of it.
    fn of(args: &AnalyzeArgs) -> Result<Option<Self>, Failure> {
        let from = args.from.unwrap_or(0.0);
        if let Some(to) = args.to.filter(|to| *to <= from) {
            return Err(Failure::usage(format!("--to {to} is not after --from {from}")));
        }
        let asked = args.from.is_some() || args.to.is_some();
        Ok(asked.then_some(Self { from, to: args.to }))
    }

    fn holds(self, end: Stamp) -> bool {
        let end = end.as_secs_f64();
        end >= self.from && self.to.is_none_or(|to| end < to)
    }

    /// How long it is in a run that ended at `end`.
    fn seconds(self, end: Stamp) -> f64 {
        let end = end.as_secs_f64();
        (self.to.map_or(end, |to| to.min(end)) - self.from).max(0.0)
    }

    fn json(self) -> Value {
        json!({"from_s": self.from, "to_s": self.to})
    }
}

/// The records whose requests were over in the window, with their counts.
fn chosen(
    window: Option<Window>,
    records: Vec<Record>,
    counts: Option<Vec<Counted>>,
    ends: &BTreeMap<u64, Stamp>,
) -> (Vec<Record>, Option<Vec<Counted>>) {
    let holds =
        |id: u64| window.is_none_or(|window| ends.get(&id).is_some_and(|end| window.holds(*end)));
    let counts =
        counts.map(|counts| counts.into_iter().filter(|counted| holds(counted.id)).collect());
    (records.into_iter().filter(|record| holds(record.id)).collect(), counts)
}
