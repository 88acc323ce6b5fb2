//! Carries a plan out.

use super::VllmPlan;
use super::beside::Around;
use super::prepare::prepare;
use super::result::{Outcome, count_each};
use super::sent::{Learned, Sent, VllmMetadata};
use super::session::Session;
use crate::exit::OrCode;
use crate::raw_log::{EndFacts, LogFile, RawLog};
use crate::record::Blank;
use crate::serve::Beside;
use crate::{Code, Environment, Failure, Io};
use serde_json::{Map, json};
use servebench_core::random::Draws;
use servebench_report::vllm::check_folder;
use std::path::Path;
use std::sync::PoisonError;

/// Runs the benchmark that `plan` describes, prints its table and, if asked to, writes its result.
///
/// # Errors
///
/// What kept the run from being made or its result from being written; each carries its exit code.
/// Failed requests are no error but data; too few successes are the code that is returned.
pub fn serve(plan: &VllmPlan, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    if plan.report.writes() {
        // A result that cannot be written is noticed before it is measured.
        check_folder(&folder(plan)).or_code(Code::Output)?;
    }
    let log = plan.run.log.raw_log.as_deref().map(LogFile::create).transpose()?;
    let blank = plan.run.record.as_ref().map(Blank::create).transpose()?;
    let session = Session::open(plan, environment, io)?;
    let mut draws = Draws::new(plan.dataset.seed);
    io.say(format_args!("preparing requests ({})", plan.dataset.dataset.name()));
    let ticker = session.preparing();
    let loaded = session.load(&mut draws)?;
    let mismatch = loaded.mismatch;
    let (names, tokenizer) = (&session.names, session.tokenizer.as_ref());
    let mut prepared = prepare(plan, &names.served, loaded, tokenizer, &mut draws)?;
    drop(ticker);

    let sent = Sent::of(plan, &prepared, mismatch, tokenizer);
    let metadata = VllmMetadata::new(plan, names, tokenizer, sent.clone());
    let log = log.map(|file| file.begin(&metadata, io)).transpose()?;
    let name = plan.backend.name();
    let begin = |blank: Blank| blank.begin(name, Some(&plan.endpoint), json!(metadata), io);
    let recording = blank.map(begin).transpose()?;
    prepared.job.witness = log.as_ref().map(RawLog::witness);

    let around = Around::new(&session, &prepared);
    let mut beside: Vec<&dyn Beside> = vec![&around];
    beside.extend(log.as_ref().map(|log| log as &dyn Beside));
    let measured = session.measure_recorded(&prepared, Some(&beside), recording.as_ref())?;
    let workers = session.workers(&prepared) as u64;
    let interrupted = session.interrupts.code().is_some();
    let state = around.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let learned = Learned::from(state);

    let records = &measured.finished.records;
    let counts = count_each(records, tokenizer, sent.tokenized);
    let mut facts = EndFacts::new(&measured, workers, interrupted);
    facts.beside = Some(json!(learned));
    let mut extra = Map::new();
    if let Some(log) = log {
        log.end(records, &counts, &facts);
        extra.insert("raw_log".into(), log.report());
    }
    if let Some(recording) = recording {
        recording.finish(records, &counts, &facts, io);
    }
    let outcome = Outcome {
        plan,
        names,
        sent,
        measured,
        workers: Some(workers),
        interrupted,
        learned,
        counts: Some(counts),
        window: None,
        extra,
    };
    outcome.report(tokenizer, environment, Some(&session.interrupts), io)
}

/// Where a result goes.
pub(super) fn folder(plan: &VllmPlan) -> std::path::PathBuf {
    let name = plan.report.filename.as_deref().unwrap_or(Path::new("result.json"));
    let path = match &plan.report.dir {
        Some(dir) => dir.join(name),
        None => name.to_owned(),
    };
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => ".".into(),
    }
}
