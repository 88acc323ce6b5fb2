//! What will be done: validated, complete, serializable. No I/O.

use super::args::{
    ContentArgs, LoraAssignment, RampStrategy, TransportArgs, VllmDatasetArgs, VllmLoadArgs,
    VllmLogArgs, VllmReportArgs, VllmTargetArgs,
};
use super::dataset::Beside;
use super::plots;
use crate::args::{LoadArgs, OwnArgs, RecordArgs, ReportArgs, SamplingArgs, TargetArgs};
use crate::endings::EndingPlan;
use crate::exit::OrCode;
use crate::record::RecordPlan;
use crate::{Code, Environment, Failure, LogPlan, Plan, ServingArgs};
use serde::Serialize;
use serde_json::{Map, Value, json};
use servebench_arrival::{Burstiness, Ramp, Rate};
use servebench_backends::BackendKind;
use servebench_backends::vllm::{Form, VllmBackend};
use servebench_datasets::vllm::VllmDatasetOptions;
use servebench_report::vllm::Metric;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;

/// All groups of flags of `bench-vllm serve`.
#[derive(Clone, Debug, Default)]
pub struct VllmServeArgs {
    /// The server and the model.
    pub target: VllmTargetArgs,
    /// When requests are sent.
    pub load: VllmLoadArgs,
    /// What they ask for.
    pub content: ContentArgs,
    /// What is sent.
    pub dataset: VllmDatasetArgs,
    /// What is reported.
    pub report: VllmReportArgs,
    /// How requests are carried.
    pub transport: TransportArgs,
    /// The simulated server and the client.
    pub own: OwnArgs,
}

/// A validated run of `bench-vllm serve`. Secrets are not in its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct VllmPlan {
    /// What all front ends share: the server, the transport, the client. What a run sends, and what of
    /// it is shown, is below.
    #[serde(skip)]
    pub run: Plan,
    /// Protocol of the server.
    #[serde(serialize_with = "by_name")]
    pub backend: VllmBackend,
    /// Path below the server's address.
    pub endpoint: String,
    /// Address of the server; `None` when it is simulated.
    pub base_url: Option<String>,
    /// Model name or path, if given.
    pub model: Option<String>,
    /// Model name sent in requests, if it differs.
    pub served_model_name: Option<String>,
    /// Whether there is no tokenizer.
    pub skip_tokenizer_init: bool,
    /// What is sampled.
    pub dataset: VllmDatasetOptions,
    /// `--num-prompts`, as given.
    pub num_prompts: i64,
    /// When requests are sent.
    pub load: VllmLoadPlan,
    /// Ask the server to go on past the end-of-text token.
    pub ignore_eos: bool,
    /// Log probabilities per token.
    pub logprobs: Option<i64>,
    /// Sampling flags, and over them `--extra-body`.
    pub extra_body: Map<String, Value>,
    /// Begin of the requests' ids.
    pub request_id_prefix: String,
    /// What is reported.
    pub report: VllmReportPlan,
}

/// When requests are sent.
#[derive(Clone, Debug, Serialize)]
pub struct VllmLoadPlan {
    /// Requests per second; infinite with a ramp.
    #[serde(serialize_with = "number")]
    pub request_rate: f64,
    /// How bursty arrivals are.
    #[serde(serialize_with = "number")]
    pub burstiness: f64,
    /// A rate that rises.
    pub ramp: Option<RampPlan>,
    /// Whether each request is sent when its row says.
    pub self_timed: bool,
    /// Whether gaps are stretched until the whole run has the rate, and the first request waits for one;
    /// else they are as they were drawn, and the first request is sent at once.
    pub stretched: bool,
    /// Most requests under way at once.
    pub max_concurrency: Option<usize>,
    /// Probe requests per second; 0 for none.
    pub probe_request_rate: f64,
    /// LoRA adapters.
    pub lora_modules: Vec<String>,
    /// How they are spread.
    pub lora_assignment: LoraAssignment,
    /// Whether the server is profiled.
    pub profile: bool,
    /// When the run ends before everything is sent and answered.
    pub endings: EndingPlan,
}

/// A rate that rises.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RampPlan {
    /// How.
    pub strategy: RampStrategy,
    /// Requests per second at the start.
    pub start: f64,
    /// Requests per second at the end.
    pub end: f64,
}

impl RampPlan {
    /// As the schedule has it. Its bounds were checked when the plan was made.
    pub(super) fn ramp(&self) -> Result<Ramp, Failure> {
        let ramp = Ramp::new(self.strategy.into(), self.start, self.end);
        ramp.map_err(|error| {
            Failure::usage(format!("--ramp-up-start-rps, --ramp-up-end-rps: {error}"))
        })
    }
}

/// What is reported.
#[derive(Clone, Debug, Serialize)]
pub struct VllmReportPlan {
    /// Which latencies.
    #[serde(serialize_with = "metric_names")]
    pub metrics: Vec<Metric>,
    /// Which percentiles of them.
    pub percentiles: Vec<f64>,
    /// Begin of the file's name.
    pub label: Option<String>,
    /// Further keys.
    pub metadata: Vec<(String, String)>,
    /// Whether a file is written.
    pub save: bool,
    /// Whether it is appended to.
    pub append: bool,
    /// Whether it has per-request arrays.
    pub detailed: bool,
    /// Its folder.
    pub dir: Option<PathBuf>,
    /// Its name.
    pub filename: Option<PathBuf>,
    /// The thresholds of the timeline, in milliseconds; `None` when it is not drawn.
    pub timeline_ms: Option<[f64; 2]>,
    /// Whether the lengths are drawn.
    pub lengths: bool,
}

impl VllmReportPlan {
    /// Whether there is anything to write.
    pub(super) fn writes(&self) -> bool {
        self.save || self.lengths || self.timeline_ms.is_some()
    }
}

/// Prompts, input length and output length of a simulated run in which nothing was said of them.
pub(super) const SIMULATED: (i64, u32, u32) = (200, 128, 64);

impl VllmPlan {
    /// Checks what was typed and fills in what was not.
    ///
    /// # Errors
    ///
    /// Usage failures that name the flags.
    pub fn new(args: VllmServeArgs, environment: &Environment) -> Result<Self, Failure> {
        let VllmServeArgs { target, load, content, dataset, report, transport, own } = args;
        let (backend, endpoint) = endpoint(&target)?;
        let simulate = own.simulate;
        let num_prompts = load.num_prompts.unwrap_or(if simulate { SIMULATED.0 } else { 1000 });
        let seed = load.seed.unwrap_or(0);
        let (request_rate, burstiness) = rate(&load)?;
        let ramp = ramp(&load, request_rate)?;
        let mut run =
            Plan::new(shared(&target, &load, &report, &transport, own, backend)?, environment)?;
        warn(&target, &content, backend, burstiness, &mut run.warnings);
        let beside = Beside { content: &content, backend, simulate, num_prompts, seed };
        let (dataset, self_timed) = beside.options(dataset, &mut run)?;
        if self_timed && (ramp.is_some() || !request_rate.is_infinite()) {
            run.warnings.push(
                "--request-rate and --ramp-up-strategy do nothing: the trace says when \
                 (--no-self-timed sends at your rate)"
                    .to_owned(),
            );
        }
        let ramp = ramp.filter(|_| !self_timed);
        let request_rate = if self_timed { Rate::INFINITE } else { request_rate };
        if let Some(ramp) = &ramp {
            ramp.ramp()?;
        }
        // Neither all at once nor at one rate: what counts is when each request is due.
        run.load.use_trace_timestamps = self_timed || ramp.is_some();
        run.seed = seed;
        run.load.request_rate = request_rate;
        let info = backend.info();
        let sampling = sampling(&content);
        if !info.openai_compatible && !info.pooling && !sampling.is_empty() {
            let flags: Vec<String> =
                sampling.keys().map(|key| format!("--{}", key.replace('_', "-"))).collect();
            let flags = flags.join(", ");
            return Err(Failure::usage(format!(
                "{flags}: not with --backend {backend}, which takes no sampling parameters"
            )));
        }
        let mut extra_body = if info.pooling { Map::new() } else { sampling };
        extra_body.extend(content.extra_body.unwrap_or_default());
        let ignore_eos =
            content.ignore_eos || (dataset.dataset.ignores_eos() && info.openai_compatible);
        let probe = load.probe_request_rate.unwrap_or(0.0);
        if !(probe.is_finite() && probe >= 0.0) {
            return Err(Failure::usage(format!("--probe-request-rate {probe} is not 0 or more")));
        }
        Ok(Self {
            backend,
            endpoint,
            base_url: run.base_url.as_ref().map(ToString::to_string),
            model: run.model.clone(),
            served_model_name: run.served_model_name.clone(),
            skip_tokenizer_init: target.skip_tokenizer_init,
            dataset,
            num_prompts,
            load: VllmLoadPlan {
                request_rate: request_rate.get(),
                burstiness: burstiness.get(),
                ramp,
                self_timed,
                stretched: true,
                max_concurrency: run.load.max_concurrency,
                probe_request_rate: probe,
                lora_modules: target.lora_modules,
                lora_assignment: target.lora_assignment.unwrap_or_default(),
                profile: load.profile,
                endings: run.load.endings,
            },
            ignore_eos,
            logprobs: content.logprobs,
            extra_body,
            request_id_prefix: content.request_id_prefix.unwrap_or_else(|| {
                let random = RandomState::new().build_hasher().finish() as u32;
                format!("bench-{random:08x}-")
            }),
            report: report_plan(report, info.pooling)?,
            run,
        })
    }

    /// The same plan, of which a raw log or a recording is kept if that is asked for; `arguments` are what these
    /// hold of the command line.
    #[must_use]
    pub fn kept(mut self, log: VllmLogArgs, record: RecordArgs, arguments: Vec<String>) -> Self {
        self.run.log = LogPlan { raw_log: log.raw_log, resume: None, arguments };
        self.run.record = RecordPlan::new(record);
        self
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

/// The backend and where it is called: a path that is not the backend's is found here, before any work.
fn endpoint(target: &VllmTargetArgs) -> Result<(VllmBackend, String), Failure> {
    let backend = target.backend.unwrap_or_default();
    let info = backend.info();
    let endpoint = target.endpoint.clone().unwrap_or_else(|| info.endpoint.to_owned());
    if !endpoint.starts_with('/') {
        return Err(Failure::usage(format!("--endpoint {endpoint} does not begin with /")));
    }
    if !backend.accepts(&endpoint) {
        let suffixes = info.suffixes.join(" or ");
        return Err(Failure::usage(format!(
            "--endpoint {endpoint} is not one of --backend {backend}, whose paths end in {suffixes}"
        ))
        .hint(format!("leave --endpoint out to use {}", info.endpoint)));
    }
    Ok((backend, endpoint))
}

fn rate(load: &VllmLoadArgs) -> Result<(Rate, Burstiness), Failure> {
    let rate = match load.request_rate.as_deref() {
        None => Rate::INFINITE,
        Some(text) => text
            .parse()
            .map_err(|error| Failure::usage(format!("--request-rate {text}: {error}")))?,
    };
    let burstiness = match load.burstiness.as_deref() {
        None => Burstiness::POISSON,
        Some(text) => {
            text.parse().map_err(|error| Failure::usage(format!("--burstiness {text}: {error}")))?
        }
    };
    Ok((rate, burstiness))
}

fn ramp(load: &VllmLoadArgs, rate: Rate) -> Result<Option<RampPlan>, Failure> {
    let Some(strategy) = load.ramp_up_strategy else { return Ok(None) };
    if !rate.is_infinite() {
        return Err(Failure::usage("--ramp-up-strategy sets the rate: drop --request-rate"));
    }
    let (Some(start), Some(end)) = (load.ramp_up_start_rps, load.ramp_up_end_rps) else {
        return Err(Failure::usage(
            "--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps",
        ));
    };
    Ok(Some(RampPlan { strategy, start, end }))
}

/// What is said of the server, the transport and the client, in the words that all front ends share.
fn shared(
    target: &VllmTargetArgs,
    load: &VllmLoadArgs,
    report: &VllmReportArgs,
    transport: &TransportArgs,
    own: OwnArgs,
    backend: VllmBackend,
) -> Result<ServingArgs, Failure> {
    let cap = match load.max_concurrency {
        None => None,
        Some(cap) => match usize::try_from(cap) {
            Ok(cap) if cap > 0 => Some(cap),
            _ => return Err(Failure::usage(format!("--max-concurrency {cap} sends nothing"))),
        },
    };
    let has_base = target.base_url.as_ref().is_some_and(|url| !url.is_empty());
    let local = |simulate: bool| (!simulate && !has_base).then(|| "127.0.0.1".to_owned());
    let mut args = ServingArgs {
        target: TargetArgs {
            backend: Some(nearest(backend)),
            base_url: target.base_url.clone(),
            host: target.host.clone().or_else(|| local(own.simulate)),
            port: target.port,
            ready_check_timeout_sec: Some(load.ready_check_timeout_sec.unwrap_or(0).max(0)),
            model: target.model.clone(),
            served_model_name: target.served_model_name.clone(),
            tokenizer: target.tokenizer.clone(),
            header: target.header.clone(),
            ..TargetArgs::default()
        },
        load: LoadArgs {
            max_concurrency: cap,
            cold_connections: transport.cold_connections,
            receive_stamps: transport.receive_stamps,
            http_reader: transport.http_reader,
            endings: transport.endings.clone(),
            ..LoadArgs::default()
        },
        sampling: SamplingArgs {
            insecure: target.insecure,
            limits: transport.limits.clone(),
            network: transport.network.clone(),
            ..SamplingArgs::default()
        },
        report: ReportArgs {
            goodput: report.goodput.clone(),
            steady_state_concurrency_ratio: report.steady_state_concurrency_ratio,
            disable_tqdm: load.disable_tqdm,
            min_success_rate: transport.min_success_rate,
            ..ReportArgs::default()
        },
        own,
        ..ServingArgs::default()
    };
    let checks = u64::from(args.target.ready_check_timeout_sec.is_some_and(|s| s > 0));
    args.load.warmup_requests = Some(load.num_warmups.unwrap_or(0) + checks as usize);
    Ok(args)
}

/// The backend of the shared plan that is closest: it says how the server is controlled, and whether
/// its replies have tokens.
fn nearest(backend: VllmBackend) -> BackendKind {
    match (backend.info().pooling, backend.info().form) {
        (true, _) => BackendKind::VllmEmbedding,
        (false, Form::Chat) => BackendKind::VllmChat,
        (false, _) => BackendKind::Vllm,
    }
}

fn warn(
    target: &VllmTargetArgs,
    content: &ContentArgs,
    backend: VllmBackend,
    burstiness: Burstiness,
    warnings: &mut Vec<String>,
) {
    let mode = target.tokenizer_mode.as_deref().unwrap_or("auto");
    if !matches!(mode, "auto" | "hf") {
        warnings.push(format!(
            "--tokenizer-mode {mode}: only tokenizer.json files are read here, so counts may differ"
        ));
    }
    if content.use_beam_search {
        warnings.push("--use-beam-search does nothing, as in the Python tool".to_owned());
    }
    if target.trust_remote_code {
        warnings
            .push("--trust-remote-code does nothing: no code from a hub is run here".to_owned());
    }
    if content.enable_multimodal_chat {
        warnings.push(
            "--enable-multimodal-chat does nothing: media always go into the messages".to_owned(),
        );
    }
    let completions = backend.info().form == Form::Completions;
    if content.logprobs.is_some() && !completions {
        warnings.push(format!("--logprobs does nothing with --backend {backend}"));
    }
    if burstiness != Burstiness::POISSON && burstiness.get() < 0.05 {
        warnings.push(format!("--burstiness {burstiness}: nearly all requests come at once"));
    }
    let told = content.extra_body.as_ref().is_some_and(|body| body.contains_key("temperature"));
    if !backend.info().pooling && content.temperature.is_none() && !told {
        warnings.push("no --temperature: the server's own is used, which may not be 0".to_owned());
    }
}

fn sampling(content: &ContentArgs) -> Map<String, Value> {
    let fields = [
        ("top_p", content.top_p.map(|value| json!(value))),
        ("top_k", content.top_k.map(|value| json!(value))),
        ("min_p", content.min_p.map(|value| json!(value))),
        ("temperature", content.temperature.map(|value| json!(value))),
        ("frequency_penalty", content.frequency_penalty.map(|value| json!(value))),
        ("presence_penalty", content.presence_penalty.map(|value| json!(value))),
        ("repetition_penalty", content.repetition_penalty.map(|value| json!(value))),
    ];
    fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
}

fn report_plan(args: VllmReportArgs, pooling: bool) -> Result<VllmReportPlan, Failure> {
    let default = if pooling { "e2el" } else { "ttft,tpot,itl" };
    let names = args.percentile_metrics.as_deref().unwrap_or(default);
    let metric = |name: &str| {
        Metric::from_name(name).ok_or_else(|| {
            let known = Metric::ALL.map(Metric::name).join(", ");
            Failure::usage(format!(
                "--percentile-metrics: no metric is called `{name}` (known: {known})"
            ))
        })
    };
    let parts = |text: &str| -> Vec<String> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let metrics = parts(names).iter().map(|name| metric(name)).collect::<Result<_, _>>()?;
    let percentile = |text: &String| match text.parse::<f64>() {
        Ok(q) if (0.0..=100.0).contains(&q) => Ok(q),
        _ => Err(Failure::usage(format!("--metric-percentiles: {text} is not from 0 to 100"))),
    };
    let percentiles = args.metric_percentiles.as_deref().unwrap_or("99");
    let percentiles = parts(percentiles).iter().map(percentile).collect::<Result<_, _>>()?;
    let thresholds = || {
        let text = args.timeline_itl_thresholds.as_deref().unwrap_or("25,50");
        plots::thresholds(text)
            .map_err(|error| Failure::usage(format!("--timeline-itl-thresholds: {error}")))
    };
    let timeline_ms = args.plot_timeline.then(thresholds).transpose()?;
    if pooling && timeline_ms.is_some() {
        return Err(Failure::usage("--plot-timeline: replies of this --backend have no tokens"));
    }
    Ok(VllmReportPlan {
        metrics,
        percentiles,
        label: args.label,
        metadata: args.metadata,
        save: args.save_result || args.append_result,
        append: args.append_result,
        detailed: args.save_detailed,
        dir: args.result_dir,
        filename: args.result_filename,
        timeline_ms,
        lengths: args.plot_dataset_stats,
    })
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn by_name<S: serde::Serializer>(backend: &VllmBackend, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(backend.name())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn number<S: serde::Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    if value.is_infinite() { to.serialize_str("inf") } else { to.serialize_f64(*value) }
}

fn metric_names<S: serde::Serializer>(metrics: &[Metric], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(metrics.iter().map(|metric| metric.name()))
}
