//! Table and result of a run of `bench-vllm serve` from its raw log or its recording.

use super::args::{VllmAnalyzeArgs, VllmReplayArgs, VllmReportArgs};
use super::result::Outcome;
use super::run::folder;
use super::sent::{Learned, VllmMetadata};
use super::{VllmPlan, VllmServeArgs};
use crate::analyze::{Past, tokenizer};
use crate::command::reread;
use crate::exit::OrCode;
use crate::raw_log::{self, another};
use crate::record::Begin;
use crate::replay::play_back;
use crate::{Code, Environment, Failure, Io};
use clap::{CommandFactory, Parser};
use serde::Deserialize;
use servebench_journal::records::RecordLog;
use servebench_report::vllm::check_folder;

/// Reports the run whose raw log is named, with what `args` ask for in place of what the run had.
///
/// `A` is the command line of the run.
///
/// # Errors
///
/// When the log cannot be read or the result not be written.
pub fn analyze<A: Parser + CommandFactory + Into<VllmServeArgs>>(
    args: &VllmAnalyzeArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    report::<A>(raw_log::open(&args.past.file)?, args, environment, io)
}

/// Sends what a recording holds through the decoders, and reports as the run did; or shows one request, or makes a
/// redacted copy.
///
/// `A` is the command line of the run.
///
/// # Errors
///
/// When the file cannot be read, or what was asked for not be written.
pub fn replay<A: Parser + CommandFactory + Into<VllmServeArgs>>(
    args: &VllmReplayArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let path = &args.analyze.past.file;
    let whose = |begin: &Begin| match begin.endpoint {
        Some(_) => Ok(()),
        None => Err(another(path.display(), "bench-serving", "replay")),
    };
    play_back(path, &args.look, whose, io, |log| report::<A>(log, &args.analyze, environment, io))
}

fn report<A: Parser + CommandFactory + Into<VllmServeArgs>>(
    log: RecordLog,
    args: &VllmAnalyzeArgs,
    environment: &Environment,
    io: &Io,
) -> Result<Code, Failure> {
    let past = Past::of(log, &args.past, |metadata: &VllmMetadata| metadata.sent.requests, io)?;
    let metadata = past.metadata;
    let mut serve: VllmServeArgs = reread::<A>(&metadata.arguments)?.into();
    serve.report = over(serve.report, &args.report);
    let plan = VllmPlan::new(serve, environment)?;
    if plan.report.writes() {
        check_folder(&folder(&plan)).or_code(Code::Output)?;
    }
    let uncounted = past.counts.is_none() && metadata.sent.tokenized;
    let name = metadata.tokenizer.as_deref();
    let tokenizer = uncounted.then(|| tokenizer(name, &args.past, environment, io)).flatten();
    // A run that was cut has learned nothing.
    let learned = past.beside.as_ref().and_then(|beside| Learned::deserialize(beside).ok());
    let mut extra = past.extra;
    extra.insert("plan".into(), metadata.plan.clone());
    let outcome = Outcome {
        plan: &plan,
        names: &metadata.names(),
        sent: metadata.sent,
        measured: past.run,
        workers: past.workers,
        interrupted: past.interrupted,
        learned: learned.unwrap_or_default(),
        counts: past.counts,
        window: past.window,
        extra,
    };
    outcome.report(tokenizer.as_ref(), environment, None, io)
}

/// What is reported of a run: what is asked for now, and else what was asked for then. Files that the run wrote are
/// not written again.
fn over(then: VllmReportArgs, now: &VllmReportArgs) -> VllmReportArgs {
    let now = now.clone();
    VllmReportArgs {
        percentile_metrics: now.percentile_metrics.or(then.percentile_metrics),
        metric_percentiles: now.metric_percentiles.or(then.metric_percentiles),
        goodput: if now.goodput.is_empty() { then.goodput } else { now.goodput },
        steady_state_concurrency_ratio: now
            .steady_state_concurrency_ratio
            .or(then.steady_state_concurrency_ratio),
        label: now.label.or(then.label),
        metadata: if now.metadata.is_empty() { then.metadata } else { now.metadata },
        save_detailed: now.save_detailed || then.save_detailed,
        timeline_itl_thresholds: now.timeline_itl_thresholds.or(then.timeline_itl_thresholds),
        save_result: now.save_result,
        append_result: now.append_result,
        result_dir: now.result_dir,
        result_filename: now.result_filename,
        plot_timeline: now.plot_timeline,
        plot_dataset_stats: now.plot_dataset_stats,
    }
}
