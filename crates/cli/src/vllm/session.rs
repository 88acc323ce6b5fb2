//! A server that is ready, with its names and a tokenizer: where each command begins.

use super::VllmPlan;
use super::server::{align, first_model};
use crate::exit::OrCode;
use crate::names::{Names, load as load_tokenizer};
use crate::prepare::Prepared;
use crate::progress::Ticker;
use crate::record::Recording;
use crate::serve::{Beside, MeasuredRun, Phases, Server, hub, measure, workers_for};
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use serde_json::Value;
use servebench_core::random::Draws;
use servebench_datasets::vllm::{VllmLoaded, load_from};
use servebench_http::{Caller, Method, TcpConnect};
use servebench_run::Stop;
use servebench_tokens::{Hub, Tokenizer};
use std::path::PathBuf;
use std::time::Duration;
use tokio::runtime::Runtime;

/// What a command works with once its server is ready.
pub(super) struct Session<'a> {
    pub(super) plan: &'a VllmPlan,
    pub(super) io: &'a Io,
    pub(super) interrupts: Interrupts,
    pub(super) server: Server,
    pub(super) caller: Caller<TcpConnect>,
    pub(super) names: Names,
    pub(super) tokenizer: Option<Tokenizer>,
    pub(super) hub: Hub,
    stop: Stop,
    runtime: Runtime,
    program: Option<PathBuf>,
}

impl<'a> Session<'a> {
    /// Says what there is to warn of, waits for the server, and loads the tokenizer.
    pub(super) fn open(
        plan: &'a VllmPlan,
        environment: &Environment,
        io: &'a Io,
    ) -> Result<Self, Failure> {
        let run = &plan.run;
        for warning in &run.warnings {
            io.say(format_args!("warning: {warning}"));
        }
        let stop = Stop::default();
        let interrupts = Interrupts::listen(&stop, io).or_code(Code::Bug)?;
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
        let program = environment.program.clone();
        Ok(Self {
            plan,
            io,
            interrupts,
            server,
            caller,
            names,
            tokenizer,
            hub,
            stop,
            runtime,
            program,
        })
    }

    /// Samples the rows of the plan's dataset, and cuts those that the server finds too long.
    pub(super) fn load(&self, draws: &mut Draws) -> Result<VllmLoaded, Failure> {
        let (plan, io) = (self.plan, self.io);
        let tokenizer = self.tokenizer.as_ref();
        let mut loaded =
            load_from(&plan.dataset, tokenizer, Some(&self.hub), draws).or_code(Code::Data)?;
        for warning in &loaded.warnings {
            io.say(format_args!("warning: {warning}"));
        }
        if plan.dataset.dataset.is_aligned() && !plan.run.simulate {
            let cut = align(&self.caller, &self.names.served, &mut loaded.samples);
            match self.runtime.block_on(cut) {
                None => io.say("the server does not tokenize: prompts stay as they are"),
                Some(0) => {}
                Some(cut) => {
                    io.say(format_args!("{cut} prompts were too long for the server, and cut"));
                }
            }
        }
        Ok(loaded)
    }

    /// The same session for another plan of the same server.
    pub(super) fn with_plan<'b>(self, plan: &'b VllmPlan) -> Session<'b>
    where
        'a: 'b,
    {
        Session { plan, ..self }
    }

    /// What the server answers at `path`, if it does, as JSON where it is.
    pub(super) fn ask(&self, path: &str) -> Option<Value> {
        const LIMIT: Duration = Duration::from_secs(30);
        let call = self.caller.call(Method::GET, path, None, LIMIT);
        let answer = self.runtime.block_on(call).ok().filter(servebench_http::Answer::is_ok)?;
        let text = || Value::String(String::from_utf8_lossy(&answer.body).into_owned());
        Some(serde_json::from_slice(&answer.body).unwrap_or_else(|_| text()))
    }

    /// Shows how far tokenizing is, until it is dropped.
    pub(super) fn preparing(&self) -> Ticker {
        match &self.tokenizer {
            Some(tokenizer) if self.plan.run.report.progress => {
                Ticker::preparing(self.io, tokenizer)
            }
            _ => Ticker::silent(),
        }
    }

    /// Threads that send these requests.
    pub(super) fn workers(&self, prepared: &Prepared) -> usize {
        let (run, in_flight) = (&self.plan.run, prepared.job.expected_in_flight());
        run.load.workers.unwrap_or_else(|| workers_for(prepared.rate(run), in_flight))
    }

    /// Sends the requests.
    pub(super) fn measure(
        &self,
        prepared: &Prepared,
        beside: Option<&dyn Beside>,
    ) -> Result<MeasuredRun, Failure> {
        self.measure_recorded(prepared, beside, None)
    }

    /// The same, recorded if that is asked for.
    pub(super) fn measure_recorded(
        &self,
        prepared: &Prepared,
        beside: Option<&dyn Beside>,
        recording: Option<&Recording>,
    ) -> Result<MeasuredRun, Failure> {
        let phases = Phases {
            plan: &self.plan.run,
            prepared,
            server: &self.server,
            workers: self.workers(prepared),
            program: self.program.as_deref(),
            beside,
            recording,
        };
        measure(&phases, &self.runtime, &self.stop, &self.interrupts, self.io).map_err(own_words)
    }
}

/// What is said of flags, in the names that they have here.
fn own_words(failure: Failure) -> Failure {
    let skips = "without --num-warmups and --ready-check-timeout-sec there is none";
    let own = |hint: String| hint.replace("--warmup-requests 0 skips it", skips);
    Failure { hint: failure.hint.map(own), ..failure }
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
