//! Carries a plan out: prepare, ready check, warm-up, measure, report.

mod calibrate;
mod conversations;
mod descriptors;
mod finish;
mod health;
mod measure;
mod percentiles;
mod ports;
mod profiler;
mod requests;
mod server;
mod shape;
mod targets;

use crate::exit::OrCode;
use crate::fetching::Fetching;
use crate::prepare::{let_bodies_go, prepare};
use crate::progress::Ticker;
use crate::raw_log::{EndFacts, Metadata};
use crate::record::Blank;
use crate::resume::Opened;
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io, Plan, names};
pub(crate) use descriptors::Descriptors;
pub(crate) use finish::{Outcome, say_failures};
pub(crate) use health::{Checkup, Used};
pub(crate) use measure::{Beside, Measured as MeasuredRun, Phases, measure};
use serde_json::{Map, json};
use servebench_report::{auto_file_name, check_writable};
use servebench_run::Stop;
use servebench_tokens::{Hub, HubConfig};
pub(crate) use server::Server;
pub(crate) use shape::{report_steady, steady_state};
use std::path::PathBuf;
use std::sync::Arc;

/// Runs the benchmark that `plan` describes, prints its table and writes its result line.
///
/// # Errors
///
/// What kept the run from being made or its result from being written; each carries its exit code.
/// Failed requests are no error but data; too few successes are the code that is returned.
pub fn serve(plan: &Plan, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    for warning in &plan.warnings {
        io.say(format_args!("warning: {warning}"));
    }
    for note in &plan.notes {
        io.say(format_args!("note: {note}"));
    }
    let stop = Stop::default();
    let interrupts = Interrupts::listen(&stop, io).or_code(Code::Bug)?;
    let output = output_file(plan);
    // A result that cannot be written is noticed before it is measured.
    check_writable(&output).or_code(Code::Output)?;
    if let Some(file) = &plan.report.steady_state_output_file {
        check_writable(file).or_code(Code::Output)?;
    }

    let log = Opened::of(plan)?;
    let blank = plan.record.as_ref().map(Blank::create).transpose()?;

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_code(Code::Bug)?;
    let hub = hub(environment, io);
    let early = names::EarlyTokenizer::start(plan, &hub, environment);
    let server = runtime.block_on(Server::connect(plan, environment))?;
    runtime.block_on(server.wait_ready(plan, io))?;
    let model = runtime.block_on(names::model(plan, &server.control))?;
    let named = names::tokenizer(plan, &model, &server.control, &hub, environment, io);
    let tokenizer = early.finish().unwrap_or_else(|| runtime.block_on(named))?;
    let (count, dataset) = (plan.dataset.requests(), plan.dataset.name.name());
    io.say(format_args!("preparing {count} requests ({dataset})"));
    let mut prepared = prepare(plan, &model, &tokenizer, &hub, io)?;

    let mut sent = prepared.clone();
    let begin = |log: Opened| log.begin(plan, &model, &tokenizer, &mut sent, io);
    let logged = log.map(begin).transpose()?;

    let begin = |blank: Blank| {
        let run = Metadata::new(plan, &model, &tokenizer, &prepared);
        blank.begin(plan.backend.name(), None, json!(run), io)
    };
    let recording = blank.map(begin).transpose()?;

    let in_flight = sent.job.expected_in_flight();
    let workers = plan.load.workers.unwrap_or_else(|| workers_for(sent.rate(plan), in_flight));
    let measured = measure::measure(
        &measure::Phases {
            plan,
            prepared: &sent,
            server: &server,
            workers,
            program: environment.program.as_deref(),
            beside: logged.as_ref().map(|logged| &logged.log as &dyn Beside),
            recording: recording.as_ref(),
        },
        &runtime,
        &stop,
        &interrupts,
        io,
    )?;
    // What follows takes memory of its own.
    drop(sent);
    let_bodies_go(&mut prepared.job);
    let interrupted = interrupts.code().is_some();
    let workers = workers as u64;
    let facts = |recording| (recording, EndFacts::new(&measured, workers, interrupted));
    let recording = recording.map(facts);
    let (measured, extra, log) = match logged {
        None => (measured, Map::new(), None),
        Some(logged) => logged.end(measured, workers, interrupted, prepared.job.total()),
    };
    let outcome = Outcome {
        plan,
        model: &model,
        prepared: &prepared,
        measured,
        workers: Some(workers),
        interrupted,
        counts: None,
        window: None,
        percentiles: &[],
        extra,
        log,
        recording,
    };
    outcome.report(Some(&tokenizer), Some(&output), Some(&interrupts), io)
}

fn output_file(plan: &Plan) -> PathBuf {
    plan.report.output_file.clone().unwrap_or_else(|| {
        let date = jiff::ZonedDateTime::now().strftime("%m%d").to_string();
        auto_file_name(&finish::flags(plan), &date, plan.dataset.num_prompts as u64).into()
    })
}

pub(crate) fn hub(environment: &Environment, io: &Io) -> Hub {
    let config = HubConfig::from_vars(|name| environment.get(name).map(str::to_owned));
    let fetching = Fetching::new(io);
    Hub::new(config).with_progress(move |downloaded| fetching.show(downloaded))
}

/// One thread serves some hundreds of streams; more threads than cores serve nobody.
pub(crate) fn workers_for(rate: f64, in_flight: Option<usize>) -> usize {
    let load = in_flight.unwrap_or(if rate.is_finite() { rate as usize } else { usize::MAX });
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    load.div_ceil(512).clamp(1, cores)
}

/// Progress of a phase as the plan wants it shown.
fn ticker(plan: &Plan, io: &Io, progress: &Arc<servebench_run::Progress>, total: usize) -> Ticker {
    if plan.report.progress { Ticker::start(io, progress, total) } else { Ticker::silent() }
}
