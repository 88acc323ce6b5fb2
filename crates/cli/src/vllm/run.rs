//! Carries a plan out.

use super::VllmPlan;
use super::beside::Around;
use super::prepare::prepare;
use super::result::Outcome;
use super::session::Session;
use crate::exit::OrCode;
use crate::raw_log::EndFacts;
use crate::record::Blank;
use crate::{Code, Environment, Failure, Io};
use serde_json::json;
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
    let blank = plan.run.record.as_ref().map(Blank::create).transpose()?;
    let session = Session::open(plan, environment, io)?;
    let mut draws = Draws::new(plan.dataset.seed);
    io.say(format_args!("preparing requests ({})", plan.dataset.dataset.name()));
    let ticker = session.preparing();
    let loaded = session.load(&mut draws)?;
    let mismatch = loaded.mismatch;
    let (names, tokenizer) = (&session.names, session.tokenizer.as_ref());
    let prepared = prepare(plan, &names.served, loaded, tokenizer, &mut draws)?;
    drop(ticker);

    let around = Around::new(&session, &prepared);
    let name = plan.backend.name();
    let begin = |blank: Blank| blank.begin(name, Some(&plan.endpoint), json!({"plan": plan}), io);
    let recording = blank.map(begin).transpose()?;
    let measured = session.measure_recorded(&prepared, Some(&around), recording.as_ref())?;
    let workers = session.workers(&prepared);
    if let Some(recording) = recording {
        let interrupted = session.interrupts.code().is_some();
        let facts = EndFacts::new(&measured, workers as u64, interrupted);
        recording.finish(&measured.finished.records, &[], &facts, io);
    }
    let state = around.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = Outcome {
        plan,
        names,
        prepared: &prepared,
        measured,
        workers,
        mismatch,
        speculation: state.speculation,
        diffusion: state.diffusion,
        probe: state.probe,
    };
    outcome.report(tokenizer, environment, &session.interrupts, io)
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
