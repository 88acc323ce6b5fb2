//! Table and result of a run from its raw log.

use crate::args::{AnalyzeArgs, PastArgs};
use crate::command::reread;
use crate::exit::OrCode;
use crate::prepare::Prepared;
use crate::raw_log::{self, History, Metadata, Whole};
use crate::resume::part_keys;
use crate::serve::{MeasuredRun, Outcome, hub};
use crate::{Code, Environment, Failure, Io, Plan, ServingArgs, names};
use clap::{CommandFactory, Parser};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use servebench_backends::GenerateOptions;
use servebench_core::{Record, Stamp};
use servebench_journal::records::{Counted, RecordLog};
use servebench_report::check_writable;
use servebench_run::Job;
use servebench_tokens::Tokenizer;
use std::collections::BTreeMap;

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
    report::<A>(raw_log::open(&args.past.file)?, args, environment, io)
}

/// Reports the run of a log, as [`analyze`] does.
pub(crate) fn report<A: Parser + CommandFactory + Into<ServingArgs>>(
    log: RecordLog,
    args: &AnalyzeArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let total = |metadata: &Metadata| Job::burst(metadata.outline().0).total();
    let past = Past::of(log, &args.past, total, io)?;
    let metadata: Metadata = past.metadata;
    let plan = plan::<A>(&metadata, args, environment)?;
    let tokenizer = match past.counts {
        Some(_) => None,
        None => tokenizer(metadata.tokenizer.as_deref(), &args.past, environment, io),
    };
    let mut extra = past.extra;
    extra.insert("plan".into(), metadata.plan.clone());
    let (requests, samples) = metadata.outline();
    let job = Job::burst(requests);
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
        measured: past.run,
        workers: past.workers,
        interrupted: past.interrupted,
        counts: past.counts,
        window: past.window,
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
    let parsed: A = reread(&metadata.arguments)?;
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

/// A run as its log tells of it, and what of it is looked at.
pub(crate) struct Past<M> {
    pub(crate) metadata: M,
    /// The run, with the records that are looked at.
    pub(crate) run: MeasuredRun,
    pub(crate) workers: Option<u64>,
    pub(crate) interrupted: bool,
    /// What was learned beside the requests.
    pub(crate) beside: Option<Value>,
    /// What was counted when the run was over, record by record; `None` where it was not.
    pub(crate) counts: Option<Vec<Counted>>,
    /// Seconds that are looked at, where they are not all those of the run.
    pub(crate) window: Option<f64>,
    /// Further keys of the result.
    pub(crate) extra: Map<String, Value>,
}

impl<M: DeserializeOwned> Past<M> {
    /// Makes it of a log; `total` gives how many requests there were to send.
    pub(crate) fn of(
        log: RecordLog,
        args: &PastArgs,
        total: impl FnOnce(&M) -> usize,
        io: &Io,
    ) -> Result<Self, Failure> {
        let window = Window::of(args)?;
        let History { metadata, parts, mut counts } = History::<M>::of(log, &args.file, io)?;
        let whole = Whole::of(parts, total(&metadata));
        let Whole { mut run, workers, interrupted, beside, parts, ends } = whole;
        let records = &mut run.finished.records;
        let counted = recall(records, &mut counts);
        let mut extra = part_keys(parts);
        if let Some(window) = window {
            extra.insert("window".into(), window.json());
        }
        let (records, counts) = chosen(window, std::mem::take(records), counted, &ends);
        if let Some(window) = window
            && records.is_empty()
        {
            return Err(window.empty(&ends));
        }
        run.finished.records = records;
        let window = window.map(|window| window.seconds(run.finished.end));
        Ok(Self { metadata, run, workers, interrupted, beside, counts, window, extra })
    }
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

/// The tokenizer of a run that was cut before its replies were counted, if it is there; without a name it is the
/// one that is built in.
pub(crate) fn tokenizer(
    name: Option<&str>,
    args: &PastArgs,
    environment: &Environment,
    io: &Io,
) -> Option<Tokenizer> {
    let Some(name) = args.tokenizer.as_deref().or(name) else {
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
    fn of(args: &PastArgs) -> Result<Option<Self>, Failure> {
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

    /// Why it cannot be reported: no request of those that were over at `ends` is in it.
    fn empty(self, ends: &BTreeMap<u64, Stamp>) -> Failure {
        let flag = if self.from > 0.0 { "--from" } else { "--to" };
        let error = format!("{flag}: no request was over in that time");
        let failure = Failure::usage(error);
        let Some((first, last)) = ends.values().min().zip(ends.values().max()) else {
            return failure;
        };
        failure.hint(format!(
            "the run's {} requests were over from {:.3} to {:.3} s",
            ends.len(),
            first.as_secs_f64(),
            last.as_secs_f64()
        ))
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
