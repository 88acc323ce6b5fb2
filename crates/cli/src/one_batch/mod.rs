//! A whole batch in one request: how fast a server is with a batch of a given size.

mod args;
mod body;
mod case;
mod facts;
mod figures;
mod markdown;
mod plan;
mod prompts;
mod result;

pub use args::{
    BatchBackend, BatchOutputArgs, BatchProfileArgs, BatchRequestArgs, BatchServerArgs,
    ONE_BATCH_FLAGS, OneBatchArgs, PromptSourceArgs, SweepArgs,
};
pub use figures::{Figures, Steady, UpstreamSpeeds};
pub use plan::OneBatchPlan;
pub use result::CaseResult;

use crate::exit::OrCode;
use crate::fetching::Fetching;
use crate::launch::{Launch, Launched, Prints, Ready, answers};
use crate::profiler::{Around, ConnectionArgs, LiveServer, ServerKind};
use crate::signals::Interrupts;
use crate::{Code, Environment, Failure, Io};
use case::{Purpose, Runner};
use facts::Guards;
use markdown::Heading;
use plan::{Case, ProfilePass};
use prompts::Maker;
use result::About;
use servebench_control::ProfileRequest;
use servebench_core::random::Draws;
use servebench_http::BaseUrl;
use servebench_report::{append_line, check_writable};
use servebench_run::Stop;
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Runs a sweep of batches and reports each case.
///
/// # Errors
///
/// A usage failure, data that cannot be used, a server that cannot be reached or refuses, a batch that
/// fails (the cases before it are reported), or output that cannot be written.
pub fn one_batch(args: OneBatchArgs, environment: &Environment, io: &Io) -> Result<Code, Failure> {
    let dry_run = args.sweep.dry_run;
    let connection = args.server.address.connection.clone();
    let plan = OneBatchPlan::new(args)?;
    for warning in &plan.warnings {
        io.say(format_args!("warning: {warning}"));
    }
    if dry_run {
        let text = serde_json::to_string_pretty(&plan).or_code(Code::Bug)?;
        io.print(text).or_code(Code::Output)?;
        return Ok(Code::Done);
    }
    for file in plan.result_file.iter().chain(&plan.structured_file) {
        check_writable(file).or_code(Code::Output)?;
    }
    let stop = Stop::default();
    let interrupts = Interrupts::listen(&stop, io).or_code(Code::Bug)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.or_code(Code::Bug)?;
    let launched = match &plan.launch {
        Some(command) => {
            let base: BaseUrl = plan.base_url.parse().or_code(Code::Usage)?;
            if runtime.block_on(answers(&base, Ready::Models)) {
                return Err(Failure::usage(format!(
                    "--launch: a server answers at {base} already; that one would be measured"
                ))
                .hint("leave --launch out to measure it, or choose another --port"));
            }
            // From here on there is something to stop.
            interrupts.begin_measuring();
            let launch = Launch {
                flag: "--launch",
                command,
                prints: Prints::Shown,
                variables: &[],
                timeout_flag: Some("--launch-timeout"),
            };
            let mut launched = Launched::start(&launch, &runtime, io)?;
            io.say(format_args!("started: {command}"));
            let limit = Duration::from_secs(plan.launch_timeout.into());
            launched.wait_ready(&plan.base_url, Ready::Models, limit, &interrupts)?;
            Some(launched)
        }
        None => None,
    };
    let run = Run { plan: &plan, connection: &connection, environment, io };
    let code = run.sweep(&runtime, &stop, &interrupts);
    drop(launched);
    code
}

/// What the parts of a run share.
struct Run<'a> {
    plan: &'a OneBatchPlan,
    connection: &'a ConnectionArgs,
    environment: &'a Environment,
    io: &'a Io,
}

/// A server and what it told.
struct Reached {
    server: LiveServer,
    guards: Guards,
    /// The model's name in requests (vLLM).
    model: String,
    tokenizer: Option<String>,
}

impl Run<'_> {
    fn sweep(
        &self,
        runtime: &tokio::runtime::Runtime,
        stop: &Stop,
        interrupts: &Interrupts,
    ) -> Result<Code, Failure> {
        let Self { plan, io, environment, .. } = *self;
        let reached = runtime.block_on(self.reach())?;
        let fetching = Fetching::new(io);
        let config = HubConfig::from_vars(|name| environment.get(name).map(str::to_owned));
        let hub = Hub::new(config).with_progress(move |downloaded| fetching.show(downloaded));
        let tokenizer = self.tokenizer(&reached, &hub)?;
        let maker = Maker { plan, tokenizer: &tokenizer, hub: &hub, cache: self.cache() };
        let model = reached.model.clone();
        let runner = Runner { plan, maker, model, runtime, stop, io };
        let guards = reached.guards.of_plan(plan);
        let sizes = guards.fits_anyway(plan);
        if !sizes.is_empty() {
            io.say(format_args!(
                "WARNING: --enable-multi-batch does nothing for batch sizes {sizes:?}: the server runs \
                 them at once"
            ));
        }
        let (mut cases, mut refused) = (Vec::new(), 0);
        for case in plan.cases() {
            match guards.refuse(case, plan) {
                None => cases.push(case),
                Some(why) => {
                    refused += 1;
                    self.print(why)?;
                }
            }
        }
        if cases.is_empty() {
            let error = anyhow::anyhow!("the server can run none of the {refused} cases");
            return Err(Failure::new(Code::Data, error)
                .hint("give smaller batches or lengths, or --skip-token-capacity-check"));
        }
        interrupts.begin_measuring();
        let mut draws = Draws::new(plan.seed);
        let server = &reached.server;
        if plan.warmup
            && let Err(failure) = self.warm_up(&runner, server, &mut draws, interrupts)
        {
            return interrupts.code().ok_or(failure);
        }
        let about = About {
            run_name: plan.run_name.clone(),
            model_path: plan.model_path.clone(),
            server_args: plan.server_args_for_metrics.clone(),
            simulated: plan.simulate,
            ignore_eos: plan.ignore_eos,
        };
        let mut results = Vec::new();
        let mut failed = None;
        for &case in &cases {
            if interrupts.code().is_some() {
                break;
            }
            match runner.run(case, Purpose::Measure, server, &mut draws) {
                Ok(result) => {
                    self.print(result.console(&about))?;
                    if let Some(file) = &plan.result_file {
                        append_line(file, &result.line(&about)).or_code(Code::Output)?;
                    }
                    results.push((case, result));
                }
                Err(mut failure) => {
                    if failure.hint.is_none() && !results.is_empty() {
                        failure.hint = Some("the results of the cases before it are kept".into());
                    }
                    failed = Some(of_case(case, failure));
                    break;
                }
            }
        }
        if let Some(pass) = plan.profile.as_ref().filter(|_| failed.is_none()) {
            self.profile(pass, &runner, server, &mut results, &mut draws, interrupts);
        }
        let results: Vec<CaseResult> = results.into_iter().map(|(_, result)| result).collect();
        self.report(&results, &about)?;
        match (interrupts.code(), failed) {
            (Some(code), _) => Ok(code),
            (None, Some(failure)) => Err(failure),
            (None, None) => Ok(Code::Done),
        }
    }

    fn print(&self, line: impl std::fmt::Display) -> Result<(), Failure> {
        self.io.print(line).or_code(Code::Output)
    }

    /// Finds the server and asks what it is like.
    async fn reach(&self) -> Result<Reached, Failure> {
        let plan = self.plan;
        let kind = match plan.backend {
            BatchBackend::Sglang => ServerKind::Sglang,
            BatchBackend::Vllm => ServerKind::Vllm,
        };
        let (url, flag) = (&plan.base_url, plan.address_flag);
        let server = LiveServer::reach(url, flag, kind, self.connection, self.environment).await?;
        server.say_proxy(self.io);
        if plan.backend == BatchBackend::Vllm {
            let model = case::first_model(&server, flag).await?;
            let tokenizer = Some(model.clone());
            return Ok(Reached { server, guards: Guards::default(), model, tokenizer });
        }
        let info = case::server_info(&server, flag).await?;
        let (guards, said) = facts::guards(&info);
        for line in said {
            self.io.say(line);
        }
        let tokenizer = facts::tokenizer_path(&info);
        Ok(Reached { server, guards, model: String::new(), tokenizer })
    }

    fn tokenizer(&self, reached: &Reached, hub: &Hub) -> Result<Tokenizer, Failure> {
        let told = self.plan.tokenizer.as_ref();
        if self.plan.simulate && told.is_none() {
            return Ok(Tokenizer::byte_level());
        }
        let hint = "give --local-tokenizer-path: a folder with a tokenizer.json, or a hub name";
        let Some(name) = told.or(reached.tokenizer.as_ref()) else {
            let error = anyhow::anyhow!("the server does not tell its tokenizer");
            return Err(Failure::new(Code::Data, error).hint(hint));
        };
        self.io.say(format_args!("tokenizer: {name}"));
        Tokenizer::load(name, hub).map_err(|error| Failure::new(Code::Data, error).hint(hint))
    }

    /// Where generated data is kept.
    fn cache(&self) -> Option<PathBuf> {
        crate::data::cache_folder(self.environment)
    }

    fn warm_up(
        &self,
        runner: &Runner<'_>,
        server: &LiveServer,
        draws: &mut Draws,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        let mut sizes = self.plan.batch_size.clone();
        sizes.sort_unstable();
        sizes.dedup();
        self.print("======== Warmup Begin ========")?;
        self.print(format_args!("Warmup with batch_size={sizes:?}"))?;
        for size in sizes {
            if interrupts.code().is_some() {
                break;
            }
            let case = Case::warmup(size);
            let done = runner.run(case, Purpose::Warmup, server, draws);
            done.map_err(|failure| {
                let failure = of_case(case, failure);
                let error = failure.error.context("the warm-up failed");
                Failure { code: Code::Server, error, ..failure }.hint("--skip-warmup leaves it out")
            })?;
        }
        self.print("======== Warmup End   ========\n")
    }

    /// Runs every case once more, profiled. What goes wrong ends the profiling alone.
    fn profile(
        &self,
        pass: &ProfilePass,
        runner: &Runner<'_>,
        server: &LiveServer,
        results: &mut [(Case, CaseResult)],
        draws: &mut Draws,
        interrupts: &Interrupts,
    ) {
        let io = self.io;
        io.say("all cases once more, profiled: these runs are in no result");
        for (case, result) in results {
            if interrupts.code().is_some() {
                return;
            }
            match self.profile_one(pass, *case, runner, server, draws, interrupts) {
                Ok(folder) => result.profile_folder = folder,
                Err(failure) => {
                    io.say(format_args!(
                        "{failure}\nthe profiling ends here; traces of cases may be missing"
                    ));
                    return;
                }
            }
        }
    }

    fn profile_one(
        &self,
        pass: &ProfilePass,
        case: Case,
        runner: &Runner<'_>,
        server: &LiveServer,
        draws: &mut Draws,
        interrupts: &Interrupts,
    ) -> Result<Option<String>, Failure> {
        let Case { batch_size, input_len, .. } = case;
        let prefix = pass.prefix.as_deref().unwrap_or_default();
        let request = ProfileRequest {
            activities: pass.activities.clone(),
            num_steps: Some(pass.steps),
            start_step: pass.start_step,
            profile_by_stage: pass.by_stage,
            profile_prefix: Some(format!("{prefix}bs-{batch_size}-il-{input_len}")),
            output_dir: pass.output_dir.clone(),
            ..ProfileRequest::default()
        };
        let (environment, io) = (self.environment, self.io);
        let ready = runner.prepare(case, Purpose::Measure, server, draws)?;
        let mut around = Around::start(runner.runtime, server.again(), request, environment, io)?;
        let folder = around.folder();
        runner.measure(ready, around.server())?;
        around.finish(interrupts)?;
        Ok(folder)
    }

    /// Says where the results are, and writes and shows all of them together.
    fn report(&self, results: &[CaseResult], about: &About) -> Result<(), Failure> {
        let plan = self.plan;
        if let Some(file) = plan.result_file.as_ref().filter(|_| !results.is_empty()) {
            self.print(format_args!("\nResults are saved to {}", file.display()))?;
        }
        if let Some(file) = &plan.structured_file {
            std::fs::write(file, result::structured(results, about))
                .map_err(|error| output(file, error))?;
        }
        if !plan.show_report || results.is_empty() {
            return Ok(());
        }
        let heading = Heading {
            input_lens: &plan.input_len,
            output_lens: &plan.output_len,
            cache_hit_rate: plan.cache_hit_rate,
            hourly_cost: plan.hourly_cost,
            may_stop: !plan.ignore_eos,
            profiled: plan.profile.is_some(),
        };
        let text = markdown::report(&heading, results);
        self.print(&text)?;
        let summary = self.environment.get("GITHUB_STEP_SUMMARY");
        if let Some(file) = summary
            && self.environment.is_on("SGLANG_IS_IN_CI")
            && plan.append_to_github_summary
        {
            let file = Path::new(file);
            let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
            let written = opened.and_then(|mut open| open.write_all(text.as_bytes()));
            written.map_err(|error| output(file, error))?;
        }
        Ok(())
    }
}

/// Names the case that a failure is of.
fn of_case(case: Case, failure: Failure) -> Failure {
    let Case { batch_size, input_len, output_len } = case;
    let error = failure.error.context(format!(
        "batch size {batch_size}, input length {input_len}, output length {output_len}"
    ));
    Failure { error, ..failure }
}

fn output(file: &Path, error: std::io::Error) -> Failure {
    Failure::new(Code::Output, anyhow::Error::new(error).context(file.display().to_string()))
}
