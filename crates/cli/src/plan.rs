//! What will be done: validated, complete, serializable. No I/O.

use crate::args::{
    BalanceName, DatasetArgs, HttpReaderName, LoadArgs, LogArgs, LoraDistribution, OwnArgs,
    ProfileArgs, ReceiveStamps, RecordArgs, ReportArgs, SGLANG_FLAGS, SamplingArgs, TargetArgs,
};
use crate::command::understood;
use crate::data::{DataDefaults, dataset_options};
use crate::endings::EndingPlan;
use crate::environment::Environment;
use crate::exit::OrCode;
use crate::hidden::Header;
use crate::limits::LimitPlan;
use crate::raw_log::logged_arguments;
use crate::reach::NetworkPlan;
use crate::record::RecordPlan;
use crate::{Code, Failure};
use clap::CommandFactory;
use serde::Serialize;
use serde_json::{Map, Value, json};
use servebench_arrival::Rate;
use servebench_backends::{BackendKind, Family};
use servebench_datasets::{DatasetName, DatasetOptions};
use servebench_http::BaseUrl;
use servebench_metrics::Slo;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// All groups of flags that describe a serving benchmark.
#[derive(Clone, Debug, Default)]
pub struct ServingArgs {
    /// The server and the model.
    pub target: TargetArgs,
    /// What is sent.
    pub dataset: DatasetArgs,
    /// When it is sent.
    pub load: LoadArgs,
    /// What the server is asked to do with it.
    pub sampling: SamplingArgs,
    /// What is reported.
    pub report: ReportArgs,
    /// The server's profiler.
    pub profile: ProfileArgs,
    /// The simulated server and the client.
    pub own: OwnArgs,
    /// The raw log.
    pub log: LogArgs,
    /// The recording.
    pub record: RecordArgs,
}

/// A validated serving benchmark. Its JSON goes into the result; secrets do not.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// Protocol of the server.
    #[serde(serialize_with = "by_name")]
    pub backend: BackendKind,
    /// Address of the server; `None` when it is simulated.
    #[serde(serialize_with = "as_text")]
    pub base_url: Option<BaseUrl>,
    /// Addresses of further servers to which the requests are dealt.
    #[serde(serialize_with = "all_as_text", skip_serializing_if = "Vec::is_empty")]
    pub further_base_urls: Vec<BaseUrl>,
    /// How they are dealt; `None` with one server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub balance: Option<BalanceName>,
    /// Whether the built-in server is measured.
    pub simulate: bool,
    /// How long to wait for the server; `None` skips the check.
    #[serde(rename = "ready_check_timeout_s", serialize_with = "as_seconds")]
    pub ready_timeout: Option<Duration>,
    /// Model name or path, if given.
    pub model: Option<String>,
    /// Model name sent in requests, if it differs.
    pub served_model_name: Option<String>,
    /// Tokenizer, if given.
    pub tokenizer: Option<String>,
    /// Names of the extra headers; the values may be secrets.
    pub header_names: Vec<String>,
    /// The extra headers.
    #[serde(skip)]
    pub headers: Vec<Header>,
    /// Fields merged into every body.
    pub extra_body: Map<String, Value>,
    /// What is sent.
    pub dataset: DatasetOptions,
    /// Seed of all draws.
    pub seed: u32,
    /// When it is sent.
    pub load: LoadPlan,
    /// What the server is asked to do with it.
    pub sampling: SamplingPlan,
    /// How long a request may take, and how often it is tried.
    pub limits: LimitPlan,
    /// The way to the servers.
    pub network: NetworkPlan,
    /// The profiler's part, if it has one.
    pub profile: Option<ProfilePlan>,
    /// What is reported.
    pub report: ReportPlan,
    /// What is asked of the client itself.
    pub client: ClientPlan,
    /// The raw log, if there is one.
    #[serde(skip_serializing_if = "LogPlan::is_none")]
    pub log: LogPlan,
    /// The recording, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<RecordPlan>,
    /// What the user should know before the run.
    #[serde(skip)]
    pub warnings: Vec<String>,
    /// What is said before the run and is nothing to worry about.
    #[serde(skip)]
    pub notes: Vec<String>,
}

/// When requests are sent.
#[derive(Clone, Debug, Serialize)]
pub struct LoadPlan {
    /// Requests per second.
    #[serde(serialize_with = "rate_as_json")]
    pub request_rate: Rate,
    /// Whether the rows' own times count instead.
    pub use_trace_timestamps: bool,
    /// Most requests under way at once.
    pub max_concurrency: Option<usize>,
    /// Pause between the turns of a conversation.
    #[serde(rename = "think_time_s", serialize_with = "in_seconds")]
    pub think_time: Duration,
    /// Whether a conversation gives its place under the cap back between turns.
    pub release_slot_between_turns: bool,
    /// Open a connection for each request.
    pub cold_connections: bool,
    /// Where receive times come from.
    pub receive_stamps: ReceiveStamps,
    /// Who reads HTTP/1.1.
    pub http_reader: HttpReaderName,
    /// Requests before the measured ones.
    pub warmup_requests: usize,
    /// How long the flush may take; `None`: no flush.
    #[serde(rename = "flush_cache_timeout_s", serialize_with = "as_seconds")]
    pub flush: Option<Duration>,
    /// LoRA adapters.
    pub lora_names: Vec<String>,
    /// How they are chosen.
    pub lora_distribution: LoraDistribution,
    /// Base of the skewed choice.
    pub lora_zipf_alpha: f64,
    /// Threads that send; `None`: as many as the load needs.
    pub workers: Option<usize>,
    /// When the run ends before everything is sent and answered.
    pub endings: EndingPlan,
}

/// What the server is asked to do with a prompt.
#[derive(Clone, Debug, Serialize)]
pub struct SamplingPlan {
    /// Stream replies.
    pub stream: bool,
    /// Go on past the end-of-text token.
    pub ignore_eos: bool,
    /// Sampling temperature.
    pub temperature: f64,
    /// Nucleus sampling.
    pub top_p: f64,
    /// Ask for log probabilities.
    pub return_logprob: bool,
    /// How many per token.
    pub top_logprobs_num: u32,
    /// For which ids.
    pub token_ids_logprob: Vec<i64>,
    /// From which prompt token on.
    pub logprob_start_len: i64,
    /// Ask for routed experts.
    pub return_routed_experts: bool,
    /// Ask for token counts.
    pub include_usage: bool,
}

/// What the server's profiler is asked to do.
#[derive(Clone, Debug, Serialize)]
pub struct ProfilePlan {
    /// What to profile.
    pub activities: Vec<String>,
    /// Steps after which the server stops by itself.
    pub num_steps: Option<u64>,
    /// Where to begin.
    pub start_step: Option<u64>,
    /// Prefill and decode apart.
    pub by_stage: bool,
    /// Which stages.
    pub stages: Vec<String>,
    /// Base folder for traces.
    pub output_dir: String,
    /// Put before file names.
    pub prefix: Option<String>,
    /// The workers of a split server that are profiled in place of the server that is measured.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub workers: Vec<ProfiledWorker>,
}

/// A worker of a split server that is to be profiled.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfiledWorker {
    /// Its name in messages, as in `Prefill-0`.
    pub label: String,
    /// Its address.
    #[serde(serialize_with = "url_as_text")]
    pub url: BaseUrl,
}

/// What is reported.
#[derive(Clone, Debug, Serialize)]
pub struct ReportPlan {
    /// The result file, if given.
    pub output_file: Option<PathBuf>,
    /// Per-request arrays.
    pub output_details: bool,
    /// Objectives.
    pub goodput: Vec<Slo>,
    /// Cache statistics.
    pub cache_report: bool,
    /// Print requests as they go.
    pub print_requests: bool,
    /// Draw the run over its time.
    pub plot_throughput: bool,
    /// Share of the peak concurrency that counts as steady, if that is to be reported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_state_concurrency_ratio: Option<f64>,
    /// Where it is appended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steady_state_output_file: Option<PathBuf>,
    /// Show progress.
    pub progress: bool,
    /// Label.
    pub tag: Option<String>,
    /// Smallest share of successes.
    pub min_success_rate: Option<f64>,
}

/// The raw log of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct LogPlan {
    /// The file in which records are kept while the run goes on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_log: Option<PathBuf>,
    /// The log of the run that is gone on with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<PathBuf>,
    /// The command line that a log keeps, without what may be secret: see
    /// [`Plan::with_arguments`].
    #[serde(skip)]
    pub arguments: Vec<String>,
}

impl LogPlan {
    fn is_none(&self) -> bool {
        self.raw_log.is_none() && self.resume.is_none()
    }
}

/// What is asked of the client itself.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ClientPlan {
    /// Whether it is measured before the run.
    pub calibrate: Calibrate,
    /// Whether a run that shows its limit is a failure.
    pub fail_if_client_bound: bool,
}

/// Whether the client is measured before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Calibrate {
    /// Only when the load looks heavy for the machine.
    #[default]
    WhenHeavy,
    /// Whatever the load.
    Always,
    /// Whatever the load, not.
    Never,
}

impl ClientPlan {
    fn new(own: &OwnArgs, backend: BackendKind) -> Self {
        // What a calibration compares are the times of tokens.
        let tokenless = backend.info().family == Family::Embeddings;
        let calibrate = match (own.calibrate, own.no_calibrate || tokenless) {
            (_, true) => Calibrate::Never,
            (true, false) => Calibrate::Always,
            (false, false) => Calibrate::WhenHeavy,
        };
        Self { calibrate, fail_if_client_bound: own.fail_if_client_bound }
    }
}

/// Requests above which a profile without an end is warned of.
const LONG_PROFILE: usize = 100;

/// Defaults of the Python tool.
const SERVER_DATA: DataDefaults = DataDefaults {
    name: DatasetName::ShareGpt,
    num_prompts: 1000,
    input_len: 1024,
    output_len: 1024,
    range_ratio: 0.0,
    exact_lengths: false,
};

/// What `--simulate` makes of them. The built-in tokenizer turns ids above 127 into other texts, so
/// its prompts are made exact.
const SIMULATED_DATA: DataDefaults = DataDefaults {
    name: DatasetName::RandomIds,
    num_prompts: 200,
    input_len: 128,
    output_len: 64,
    range_ratio: 1.0,
    exact_lengths: true,
};

impl Plan {
    /// Checks what was typed and fills in what was not.
    ///
    /// # Errors
    ///
    /// Usage failures that name the flags.
    pub fn new(args: ServingArgs, environment: &Environment) -> Result<Self, Failure> {
        let ServingArgs { target, dataset, load, sampling, report, profile, own, log, record } =
            args;
        if record.record.is_some() && log.resume.is_some() {
            return Err(Failure::usage("--record is of one run: not with --resume"));
        }
        let mut defaults = if own.simulate { SIMULATED_DATA } else { SERVER_DATA };
        defaults.exact_lengths &= target.tokenizer.is_none();
        let backend = target.backend.unwrap_or(BackendKind::Sglang);
        check_backend(backend, &target, &load, &own)?;
        let mut warnings = Vec::new();

        let seed = dataset.seed.unwrap_or(42);
        let dataset = dataset_options(dataset, backend, &defaults, environment, &mut warnings)?;
        if dataset.name.has_timestamps()
            && load.use_trace_timestamps != Some(false)
            && load.request_rate.is_some()
        {
            warnings.push(
                "--request-rate does nothing here: requests are sent at the times of the trace \
                 (--use-trace-timestamps false sends them at that rate)"
                    .to_owned(),
            );
        }
        check_slots(&load, dataset.has_turns())?;
        let threads = own.rust_worker_threads.and_then(|threads| usize::try_from(threads).ok());
        let workers = own.workers.or(threads);
        let load = load_plan(load, workers, backend, dataset.name, environment)?;
        if report.print_requests && backend != BackendKind::SglangOaiChat {
            return Err(Failure::usage("--print-requests works with --backend sglang-oai-chat"));
        }
        if report.cache_report && !backend.info().is_sglang {
            warnings.push(format!(
                "--cache-report: backend {} may not report cached tokens",
                backend.name()
            ));
        }
        warnings.extend(probability_warnings(&sampling, backend, report.output_details));
        let own_messages =
            target.extra_request_body.as_ref().is_some_and(|body| body.contains_key("messages"));
        if own_messages && dataset.has_turns() {
            return Err(Failure::usage(
                "--extra-request-body has messages, which would take the place of the conversation's",
            ));
        }
        let profile = profile_plan(profile, environment, &mut warnings)?;
        let endless = profile.as_ref().is_some_and(|profile| profile.num_steps.is_none());
        if endless && dataset.num_prompts > LONG_PROFILE {
            warnings.push(format!(
                "--profile traces all {} requests, which makes large files; --profile-num-steps \
                 ends it earlier",
                dataset.num_prompts
            ));
        }
        let top_p = sampling.top_p.unwrap_or(1.0);
        if !(top_p > 0.0 && top_p <= 1.0) {
            return Err(Failure::usage(format!("--top-p {top_p} is not above 0 and at most 1")));
        }
        let temperature = sampling.temperature.unwrap_or(0.0);
        if !(temperature.is_finite() && temperature >= 0.0) {
            return Err(Failure::usage(format!("--temperature {temperature} is not 0 or more")));
        }

        let (base_url, further_base_urls) = base_urls(&target, &own, backend)?;
        let profiles_target = profile.as_ref().is_some_and(|profile| profile.workers.is_empty());
        if !further_base_urls.is_empty() && profiles_target {
            return Err(Failure::usage("--profile works with one server, not with --base-urls"));
        }
        check_http2(&sampling, &load, &own)?;
        let network = NetworkPlan::new(&sampling.network, sampling.insecure, environment);
        let mut notes = notes(&own);
        notes.extend(network.notes(base_url.iter().chain(&further_base_urls)));
        let ready_seconds = target.ready_check_timeout_sec.unwrap_or(60);
        Ok(Self {
            backend,
            base_url,
            balance: (!further_base_urls.is_empty()).then(|| target.balance.unwrap_or_default()),
            further_base_urls,
            simulate: own.simulate,
            ready_timeout: u64::try_from(ready_seconds)
                .ok()
                .filter(|s| *s > 0)
                .map(Duration::from_secs),
            model: target.model.or_else(|| own.simulate.then(|| "sim".to_owned())),
            served_model_name: target.served_model_name,
            tokenizer: target.tokenizer,
            header_names: target.header.iter().map(|(name, _)| name.clone()).collect(),
            headers: target.header,
            extra_body: extra_body(
                target.extra_request_body.unwrap_or_default(),
                backend,
                report.cache_report,
                target.fake_prefill,
            ),
            dataset,
            seed,
            load,
            sampling: SamplingPlan {
                stream: !sampling.disable_stream,
                ignore_eos: !sampling.disable_ignore_eos,
                temperature,
                top_p,
                return_logprob: sampling.return_logprob,
                top_logprobs_num: sampling.top_logprobs_num.unwrap_or(0),
                token_ids_logprob: sampling.token_ids_logprob,
                logprob_start_len: sampling.logprob_start_len.unwrap_or(-1),
                return_routed_experts: sampling.return_routed_experts,
                include_usage: !sampling.disable_include_usage,
            },
            limits: LimitPlan::new(&sampling.limits),
            network,
            profile,
            report: ReportPlan {
                output_file: report.output_file,
                output_details: report.output_details,
                goodput: last_of_each(report.goodput),
                cache_report: report.cache_report,
                print_requests: report.print_requests,
                plot_throughput: report.plot_throughput,
                steady_state_concurrency_ratio: report.steady_state_concurrency_ratio,
                steady_state_output_file: report.steady_state_output_file,
                progress: !report.disable_tqdm,
                tag: report.tag,
                min_success_rate: report.min_success_rate,
            },
            client: ClientPlan::new(&own, backend),
            record: RecordPlan::new(record),
            log: LogPlan { raw_log: log.raw_log, resume: log.resume, arguments: Vec::new() },
            warnings,
            notes,
        })
    }
}

impl Plan {
    /// The same plan, which a raw log is to hold as this command line of `A`.
    ///
    /// # Errors
    ///
    /// Usage failures that name the flags.
    pub fn with_arguments<A: CommandFactory>(
        mut self,
        arguments: &[OsString],
    ) -> Result<Self, Failure> {
        self.log.arguments = logged_arguments(&understood::<A>(arguments, SGLANG_FLAGS)?);
        Ok(self)
    }

    /// Prints the plan as JSON.
    ///
    /// # Errors
    ///
    /// An output failure when standard output cannot be written.
    pub fn print(&self, io: &crate::Io) -> Result<(), Failure> {
        let json = serde_json::to_string_pretty(self).or_code(Code::Bug)?;
        io.print(json).or_code(Code::Output)
    }
}

/// What a flag does that was given to another tool.
fn notes(own: &OwnArgs) -> Vec<String> {
    let native = "--rust-client: every run is sent by this program's own native client, so the flag \
                  changes nothing";
    own.rust_client.then(|| native.to_owned()).into_iter().collect()
}

/// What the options for probabilities and experts do not do with this backend.
fn probability_warnings(
    sampling: &SamplingArgs,
    backend: BackendKind,
    details: bool,
) -> Vec<String> {
    let family = backend.info().family;
    let native = family == Family::Native;
    let asks = [
        ("--return-logprob", sampling.return_logprob, native || family == Family::Completions),
        (
            "--top-logprobs-num",
            sampling.top_logprobs_num.is_some_and(|n| n > 0),
            native || family == Family::Completions,
        ),
        ("--token-ids-logprob", !sampling.token_ids_logprob.is_empty(), native),
        ("--logprob-start-len", sampling.logprob_start_len.is_some(), native),
        ("--return-routed-experts", sampling.return_routed_experts, native),
    ];
    let idle = asks.iter().filter(|(_, given, works)| *given && !*works).map(|(flag, ..)| *flag);
    let idle: Vec<&str> = idle.collect();
    let mut warnings = Vec::new();
    if !idle.is_empty() {
        warnings.push(format!(
            "{}: no effect with --backend {backend}, whose requests have no such field (a server that \
             has one takes it by --extra-request-body)",
            idle.join(", ")
        ));
    }
    let needs_more = (native && !sampling.token_ids_logprob.is_empty())
        || ((native || family == Family::Completions)
            && sampling.top_logprobs_num.is_some_and(|n| n > 0));
    if needs_more && !sampling.return_logprob {
        warnings.push(if native {
            "--top-logprobs-num and --token-ids-logprob are sent, but servers need --return-logprob too"
                .into()
        } else {
            "--top-logprobs-num does nothing without --return-logprob".into()
        });
    }
    if native && sampling.return_routed_experts && !details {
        warnings.push(
            "--return-routed-experts: what replies tell is kept with --output-details only".into(),
        );
    }
    warnings
}

/// A place can be released only where there are few and somebody leaves one.
fn check_slots(load: &LoadArgs, has_turns: bool) -> Result<(), Failure> {
    if !load.release_slot_between_turns {
        return Ok(());
    }
    if load.max_concurrency.is_none_or(|cap| cap == 0) {
        return Err(Failure::usage(
            "--release-slot-between-turns needs --max-concurrency: without it there are no places to \
             wait for",
        ));
    }
    if !has_turns {
        return Err(Failure::usage(
            "--release-slot-between-turns is for conversations of several turns: --dataset-name \
             agentic-trace, or generated-shared-prefix with --gsp-num-turns",
        ));
    }
    Ok(())
}

/// The readers of HTTP/1.1 and the built-in server do not speak it.
fn check_http2(sampling: &SamplingArgs, load: &LoadPlan, own: &OwnArgs) -> Result<(), Failure> {
    if !sampling.network.http2 {
        return Ok(());
    }
    if own.simulate {
        return Err(Failure::usage(
            "--http2: the built-in server speaks HTTP/1.1, drop --simulate",
        ));
    }
    if load.http_reader != HttpReaderName::Auto {
        return Err(Failure::usage(
            "--http2: --http-reader chooses who reads HTTP/1.1, drop one of them",
        ));
    }
    Ok(())
}

/// Triton and Truss list no models and know no adapters; embeddings have no tokens.
fn check_backend(
    backend: BackendKind,
    target: &TargetArgs,
    load: &LoadArgs,
    own: &OwnArgs,
) -> Result<(), Failure> {
    if own.calibrate && backend.info().family == Family::Embeddings {
        return Err(Failure::usage(format!(
            "--calibrate compares the times of tokens, of which --backend {backend} has none"
        )));
    }
    if !matches!(backend.info().family, Family::Triton | Family::Truss) {
        return Ok(());
    }
    if target.model.is_none() && !own.simulate {
        return Err(Failure::usage(format!(
            "--backend {backend} needs --model: such a server does not say what it serves"
        )));
    }
    if !load.lora_name.is_empty() {
        return Err(Failure::usage(format!(
            "--lora-name does nothing with --backend {backend}, which has no adapters"
        )));
    }
    Ok(())
}

/// The server's address, and those of further ones.
fn base_urls(
    target: &TargetArgs,
    own: &OwnArgs,
    backend: BackendKind,
) -> Result<(Option<BaseUrl>, Vec<BaseUrl>), Failure> {
    if target.balance.is_some() && target.base_urls.len() < 2 {
        return Err(Failure::usage(
            "--balance deals requests to several servers: give --base-urls",
        ));
    }
    if target.base_urls.is_empty() {
        return Ok((base_url(target, own, backend)?, Vec::new()));
    }
    if own.simulate {
        return Err(Failure::usage("--simulate starts its own server: drop --base-urls"));
    }
    let parse = |url: &String| {
        let parsed = url.parse::<BaseUrl>();
        parsed.map_err(|error| Failure::usage(format!("--base-urls: {error}")))
    };
    let mut urls = target.base_urls.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let first = urls.remove(0);
    Ok((Some(first), urls))
}

fn base_url(
    target: &TargetArgs,
    own: &OwnArgs,
    backend: BackendKind,
) -> Result<Option<BaseUrl>, Failure> {
    let base = target.base_url.as_deref().filter(|url| !url.is_empty());
    if own.simulate {
        let given = [
            ("--base-url", base.is_some()),
            ("--host", target.host.is_some()),
            ("--port", target.port.is_some()),
        ];
        if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Failure::usage(format!("--simulate starts its own server: drop {flag}"))
                .hint("leave --simulate out to measure the server at that address"));
        }
        return Ok(None);
    }
    let parsed = match base {
        Some(url) => url.parse(),
        None => BaseUrl::from_host_port(
            target.host.as_deref().unwrap_or("0.0.0.0"),
            target.port.unwrap_or_else(|| backend.info().default_port),
        ),
    };
    let flag = if base.is_some() { "--base-url" } else { "--host" };
    parsed.map(Some).map_err(|error| Failure::new(Code::Usage, anyhow::anyhow!("{flag}: {error}")))
}

fn load_plan(
    args: LoadArgs,
    workers: Option<usize>,
    backend: BackendKind,
    dataset: DatasetName,
    environment: &Environment,
) -> Result<LoadPlan, Failure> {
    let timed = dataset.has_timestamps();
    if args.use_trace_timestamps == Some(true) && !timed {
        return Err(Failure::usage(format!(
            "--use-trace-timestamps works with --dataset-name mooncake, whose rows have times, not {}",
            dataset.name()
        )));
    }
    let request_rate = match args.request_rate.as_deref() {
        None => Rate::INFINITE,
        Some(text) => text
            .parse()
            .map_err(|error| Failure::usage(format!("--request-rate {text}: {error}")))?,
    };
    let alpha = args.lora_zipf_alpha.unwrap_or(1.5);
    if args.lora_request_distribution != LoraDistribution::Uniform && args.lora_name.len() < 2 {
        return Err(Failure::usage(
            "--lora-request-distribution distinct and skewed need at least 2 names in --lora-name",
        ));
    }
    let skewed = args.lora_request_distribution == LoraDistribution::Skewed;
    if skewed && !(alpha.is_finite() && alpha > 1.0) {
        return Err(Failure::usage(format!("--lora-zipf-alpha {alpha} is not above 1")));
    }
    if workers == Some(0) {
        return Err(Failure::usage("--workers 0 sends nothing; give 1 or more"));
    }
    let flush =
        args.flush_cache || (environment.is_on("SGLANG_IS_IN_CI") && backend.info().is_sglang);
    Ok(LoadPlan {
        request_rate,
        use_trace_timestamps: timed && args.use_trace_timestamps.unwrap_or(true),
        // 0 means no cap upstream too.
        max_concurrency: args.max_concurrency.filter(|cap| *cap > 0),
        think_time: Duration::from_secs_f64(args.think_time.unwrap_or(0.0)),
        release_slot_between_turns: args.release_slot_between_turns,
        cold_connections: args.cold_connections,
        receive_stamps: args.receive_stamps,
        http_reader: args.http_reader,
        warmup_requests: args.warmup_requests.unwrap_or(1),
        flush: flush.then(|| Duration::from_secs_f64(args.flush_cache_timeout.unwrap_or(60.0))),
        lora_names: args.lora_name,
        lora_distribution: args.lora_request_distribution,
        lora_zipf_alpha: alpha,
        workers,
        endings: EndingPlan::new(&args.endings),
    })
}

fn profile_plan(
    args: ProfileArgs,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<Option<ProfilePlan>, Failure> {
    let workers = profiled_workers(&args)?;
    if !args.profile {
        if args.pd_separated {
            warnings.push("--pd-separated does nothing without --profile".to_owned());
        }
        return Ok(None);
    }
    // Profiling by stage without an end would break the server's loop.
    let by_stage_steps = args.profile_by_stage.then_some(5);
    Ok(Some(ProfilePlan {
        activities: if args.profile_activities.is_empty() {
            vec!["CPU".into(), "GPU".into()]
        } else {
            args.profile_activities
        },
        num_steps: args.profile_steps.or(args.profile_num_steps).or(by_stage_steps),
        start_step: args.profile_start_step,
        by_stage: args.profile_by_stage,
        stages: args.profile_stages,
        output_dir: args
            .profile_output_dir
            .or_else(|| environment.get("SGLANG_TORCH_PROFILER_DIR").map(str::to_owned))
            .unwrap_or_else(|| "/tmp".into()),
        prefix: args.profile_prefix,
        workers,
    }))
}

/// The workers of a split server, with their names.
fn profiled_workers(args: &ProfileArgs) -> Result<Vec<ProfiledWorker>, Failure> {
    let kinds = [
        ("--profile-prefill-url", "Prefill", &args.profile_prefill_url),
        ("--profile-decode-url", "Decode", &args.profile_decode_url),
    ];
    let Some((flag, kind, urls)) = kinds.into_iter().find(|(_, _, urls)| !urls.is_empty()) else {
        if args.pd_separated && args.profile {
            return Err(Failure::usage(
                "--pd-separated profiles the workers of a split server: name them with \
                 --profile-prefill-url or --profile-decode-url",
            ));
        }
        return Ok(Vec::new());
    };
    if !args.pd_separated {
        return Err(Failure::usage(format!("{flag} needs --pd-separated")).hint(
            "without it the profiler is that of the server that is measured, whatever workers it has",
        ));
    }
    let worker = |(at, url): (usize, &String)| {
        let url = url.parse().map_err(|error| Failure::usage(format!("{flag}: {error}")))?;
        Ok(ProfiledWorker { label: format!("{kind}-{at}"), url })
    };
    urls.iter().enumerate().map(worker).collect()
}

fn extra_body(
    mut body: Map<String, Value>,
    backend: BackendKind,
    cache_report: bool,
    fake_prefill: bool,
) -> Map<String, Value> {
    if cache_report && backend.info().is_sglang && backend.info().family != Family::Native {
        body.insert("return_cached_tokens_details".into(), json!(true));
    }
    if fake_prefill {
        // The address by which a decode server knows that there is nothing to wait for.
        body.insert("bootstrap_host".into(), json!("2.2.2.2"));
        body.insert("bootstrap_room".into(), json!(0));
    }
    body
}

/// Of several objectives for one metric the last counts, in the place of the first.
fn last_of_each(objectives: Vec<Slo>) -> Vec<Slo> {
    let mut kept: Vec<Slo> = Vec::new();
    for slo in objectives {
        match kept.iter_mut().find(|known| known.metric == slo.metric) {
            Some(known) => *known = slo,
            None => kept.push(slo),
        }
    }
    kept
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn by_name<S: serde::Serializer>(backend: &BackendKind, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(backend.name())
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn as_text<S: serde::Serializer>(base: &Option<BaseUrl>, to: S) -> Result<S::Ok, S::Error> {
    base.as_ref().map(ToString::to_string).serialize(to)
}

fn url_as_text<S: serde::Serializer>(base: &BaseUrl, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(base)
}

fn all_as_text<S: serde::Serializer>(bases: &[BaseUrl], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(bases.iter().map(ToString::to_string))
}

#[expect(clippy::ref_option, reason = "the signature that serde calls")]
fn as_seconds<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    time.map(|time| time.as_secs_f64()).serialize(to)
}

fn in_seconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn rate_as_json<S: serde::Serializer>(rate: &Rate, to: S) -> Result<S::Ok, S::Error> {
    if rate.is_infinite() { to.serialize_str("inf") } else { to.serialize_f64(rate.get()) }
}
