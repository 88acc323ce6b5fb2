//! Carries a plan out.

use super::VllmPlan;
use super::beside::Around;
use super::prepare::prepare;
use super::result::Outcome;
use super::session::Session;
use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io};
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
    let measured = session.measure(&prepared, Some(&around))?;
    let state = around.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = Outcome {
        plan,
        names,
        prepared: &prepared,
        measured,
        workers: session.workers(&prepared),
        mismatch,
        speculation: state.speculation,
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
