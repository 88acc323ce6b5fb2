//! Carries a plan out.

use super::VllmPlan;
use super::beside::{Around, State};
use super::prepare::prepare;
use super::result::Outcome;
use super::server::{align, first_model};
use crate::exit::OrCode;
use crate::names::{Names, load as load_tokenizer};
use crate::progress::Ticker;
use crate::serve::{Phases, Server, hub, measure, workers_for};
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use servebench_core::random::Draws;
use servebench_datasets::vllm::load;
use servebench_http::Caller;
use servebench_report::vllm::check_folder;
use servebench_run::Stop;
use servebench_tokens::{Hub, Tokenizer};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Runs the benchmark that `plan` describes, prints its table and, if asked to, writes its result.
///
/// # Errors
///
/// What kept the run from being made or its result from being written; each carries its exit code.
/// Failed requests are no error but data; too few successes are the code that is returned.
pub fn serve(plan: &VllmPlan, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    let run = &plan.run;
    for warning in &run.warnings {
        io.say(format_args!("warning: {warning}"));
    }
    let stop = Stop::default();
    let interrupts = Interrupts::listen(&stop, io).or_code(Code::Bug)?;
    if plan.report.save {
        // A result that cannot be written is noticed before it is measured.
        check_folder(&folder(plan)).or_code(Code::Output)?;
    }
    // The Python tool knows one variable for a key.
    let environment = &environment.without("API_KEY");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_code(Code::Bug)?;
    let hub = hub(environment, io);
    let server = runtime.block_on(Server::connect(run, environment))?;
    runtime.block_on(server.wait_ready(run, io))?;
    let caller = Caller::new(server.connect.clone(), server.target.clone());
    let names = if let Some(model) = &run.model {
        let served = run.served_model_name.clone().unwrap_or_else(|| model.clone());
        Names { model: model.clone(), served }
    } else {
        let listed = runtime.block_on(first_model(&caller))?;
        io.say(format_args!("model: {}", listed.id));
        Names { model: listed.root, served: listed.id }
    };
    let tokenizer = tokenizer(plan, &names, &hub, environment)?;

    let mut draws = Draws::new(plan.dataset.seed);
    io.say(format_args!("preparing requests ({})", plan.dataset.dataset.name()));
    let ticker = match &tokenizer {
        Some(tokenizer) if run.report.progress => Ticker::preparing(io, tokenizer),
        _ => Ticker::silent(),
    };
    let mut loaded = load(&plan.dataset, tokenizer.as_ref(), &mut draws).or_code(Code::Data)?;
    for warning in &loaded.warnings {
        io.say(format_args!("warning: {warning}"));
    }
    let mismatch = loaded.mismatch;
    if plan.dataset.dataset.is_aligned() && !run.simulate {
        match runtime.block_on(align(&caller, &names.served, &mut loaded.samples)) {
            None => io.say("the server does not tokenize: prompts stay as they are"),
            Some(0) => {}
            Some(cut) => {
                io.say(format_args!("{cut} prompts were too long for the server, and cut"));
            }
        }
    }
    let prepared = prepare(plan, &names.served, loaded, tokenizer.as_ref(), &mut draws)?;
    drop(ticker);

    let in_flight = prepared.job.expected_in_flight();
    let workers = run.load.workers.unwrap_or_else(|| workers_for(prepared.rate(run), in_flight));
    let around = Around {
        plan,
        control: &server.control,
        caller: &caller,
        connect: &server.connect,
        protocol: Arc::clone(&prepared.protocol),
        first: prepared.samples.first(),
        io,
        state: Mutex::new(State::default()),
    };
    let phases = Phases {
        plan: run,
        prepared: &prepared,
        server: &server,
        workers,
        program: environment.program.as_deref(),
        beside: Some(&around),
    };
    let measured = measure(&phases, &runtime, &stop, &interrupts, io).map_err(own_words)?;
    let state = around.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    let outcome = Outcome {
        plan,
        names: &names,
        prepared: &prepared,
        measured,
        workers,
        mismatch,
        speculation: state.speculation,
        probe: state.probe,
    };
    outcome.report(tokenizer.as_ref(), environment, &interrupts, io)
}

/// What is said of flags, in the names that they have here.
fn own_words(failure: Failure) -> Failure {
    let skips = "without --num-warmups and --ready-check-timeout-sec there is none";
    let own = |hint: String| hint.replace("--warmup-requests 0 skips it", skips);
    Failure { hint: failure.hint.map(own), ..failure }
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

fn tokenizer(
    plan: &VllmPlan,
    names: &Names,
    hub: &Hub,
    environment: &Environment,
) -> Result<Option<Tokenizer>, Failure> {
    if plan.skip_tokenizer_init {
        return Ok(None);
    }
    match &plan.run.tokenizer {
        Some(name) => load_tokenizer(name, hub, environment).map(Some),
        None if plan.run.simulate => Ok(Some(Tokenizer::byte_level())),
        None => {
            load_tokenizer(&names.model, hub, environment).map(Some).map_err(
                |failure| match failure.hint {
                    Some(_) => failure,
                    None => failure.hint(
                        "give --tokenizer: a folder with a tokenizer.json, or a hub name; \
                     --skip-tokenizer-init does without",
                    ),
                },
            )
        }
    }
}
