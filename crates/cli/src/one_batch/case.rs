//! One case: flush, prompts, request, figures.

use super::args::BatchBackend;
use super::body;
use super::facts::{self, CacheCounters};
use super::figures::{Asked, Figures};
use super::plan::{Case, OneBatchPlan};
use super::prompts::{Maker, Prompts};
use super::result::CaseResult;
use crate::exit::OrCode;
use crate::profiler::LiveServer;
use crate::{Code, Failure, Io};
use bytes::Bytes;
use serde_json::Value;
use servebench_backends::batch::{Batch, BatchRoute};
use servebench_control::ControlError;
use servebench_core::random::Draws;
use servebench_core::{FailureKind, Protocol, Record, Request};
use servebench_http::{Caller, HttpBackend, Limits, Method};
use servebench_run::{Job, Stop, TokioClock, run_here};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Longest silence of the server, as upstream allows.
const SILENCE: Duration = Duration::from_mins(10);
/// How long the metrics page may take.
const METRICS_LIMIT: Duration = Duration::from_secs(5);
/// How long the server may take to become idle for a flush.
const FLUSH_LIMIT: Duration = Duration::from_mins(1);
/// Tries of a storage flush, and the pause between them.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);

/// What all cases share.
pub(super) struct Runner<'a> {
    pub(super) plan: &'a OneBatchPlan,
    pub(super) maker: Maker<'a>,
    /// The model's name in requests (vLLM).
    pub(super) model: String,
    pub(super) runtime: &'a Runtime,
    pub(super) stop: &'a Stop,
    pub(super) io: &'a Io,
}

/// What a case is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Nothing is kept of it.
    Warmup,
    /// Its figures are wanted.
    Measure,
}

/// A case whose request is ready to be sent.
pub(super) struct Ready {
    prompts: Prompts,
    body: Bytes,
    ignore_eos: bool,
}

impl Runner<'_> {
    /// Runs one case against `server`.
    pub(super) fn run(
        &self,
        case: Case,
        purpose: Purpose,
        server: &LiveServer,
        draws: &mut Draws,
    ) -> Result<CaseResult, Failure> {
        let ready = self.prepare(case, purpose, server, draws)?;
        self.measure(ready, server)
    }

    /// Brings the server's cache into the state that the case wants, and makes the request.
    pub(super) fn prepare(
        &self,
        case: Case,
        purpose: Purpose,
        server: &LiveServer,
        draws: &mut Draws,
    ) -> Result<Ready, Failure> {
        let plan = self.plan;
        let warmup = purpose == Purpose::Warmup;
        let ignore_eos = warmup || plan.ignore_eos;
        self.runtime.block_on(self.flush(server))?;
        let list: &[u32] = if warmup { &[] } else { &plan.input_len_list };
        let prompts = self.maker.make(case, list, draws)?;
        let adapters = body::adapters(plan, prompts.ids.len(), draws);
        let body = body::measured(plan, &prompts, &self.model, ignore_eos, adapters);
        let hit = (f64::from(prompts.input_len) * plan.cache_hit_rate) as usize;
        if !warmup && hit > 0 {
            let caller = Caller::new(server.connect.clone(), server.target.clone());
            let share = plan.cache_hit_rate * 100.0;
            self.print(format_args!(
                "Warming up cache with {share:.1}% hit rate ({hit} tokens per request)"
            ))?;
            let filling = body::filling(plan, &prompts, &self.model, hit);
            self.runtime.block_on(self.fill(&caller, filling))?;
            self.print("Cache warmup completed")?;
        }
        Ok(Ready { prompts, body, ignore_eos })
    }

    /// Sends the request and takes its figures.
    pub(super) fn measure(&self, ready: Ready, server: &LiveServer) -> Result<CaseResult, Failure> {
        let Ready { prompts, body, ignore_eos } = ready;
        let plan = self.plan;
        let caller = Caller::new(server.connect.clone(), server.target.clone());
        let rows = u32::try_from(prompts.ids.len()).unwrap_or(u32::MAX);
        let (route, sglang) = match plan.backend {
            BatchBackend::Sglang => (BatchRoute::Native, true),
            BatchBackend::Vllm => (BatchRoute::Completions, false),
        };
        let batch = Batch::new(route, prompts.ids.len(), !ignore_eos);
        let plan_sha256 = sha256(batch.path(), &body);
        let before = self.runtime.block_on(counters(&caller));
        let started_at_unix = jiff::Timestamp::now().as_millisecond() as f64 / 1e3;
        let request = Request { body, output_len: prompts.output_len, ..Request::default() };
        let record = self.send(server, &batch, request)?;
        let end = record.reply.last_line.unwrap_or(record.dispatched);
        let asked = Asked {
            rows,
            input_tokens: prompts.input_tokens,
            upstream_input_tokens: prompts.upstream_input_tokens,
            output_len: prompts.output_len,
            only_window: !ignore_eos || plan.is_replay(),
            assumed_output: !sglang,
        };
        let seen = batch.take();
        if asked.only_window && seen.iter().any(|seen| seen.tokens.is_none()) {
            let error = anyhow::anyhow!(
                "the server does not count tokens in its stream (continuous_usage_stats), and replies \
                 that may end early, or recorded prompts, cannot be measured without"
            );
            return Err(Failure::new(Code::Server, error));
        }
        let figures = Figures::of(&asked, record.dispatched, end, &seen);
        let figures = figures.ok_or_else(|| {
            Failure::new(Code::Requests, anyhow::anyhow!("a prompt of the batch brought no token"))
        })?;
        let info =
            if sglang { self.runtime.block_on(server.control.server_info()).ok() } else { None };
        let after = self.runtime.block_on(counters(&caller));
        let cache_hit_rate =
            before.zip(after).and_then(|(before, after)| after.hit_rate_since(&before));
        Ok(CaseResult {
            batch_size: rows,
            input_len: prompts.input_len,
            output_len: prompts.output_len,
            figures,
            acc_length: info.as_ref().and_then(facts::accept_length),
            last_gen_throughput: info.as_ref().and_then(facts::last_gen_throughput),
            cache_hit_rate,
            plan_sha256,
            started_at_unix,
            profile_folder: None,
        })
    }

    fn print(&self, line: impl std::fmt::Display) -> Result<(), Failure> {
        self.io.print(line).or_code(Code::Output)
    }

    /// Empties the server's caches.
    async fn flush(&self, server: &LiveServer) -> Result<(), Failure> {
        server.control.flush_cache(FLUSH_LIMIT).await.map_err(|error| {
            let unsupported = matches!(error, ControlError::Unsupported { .. });
            let failure = Failure::new(Code::Server, error);
            if unsupported {
                failure
                    .hint("without a flush, a case would find the prompts of the one before cached")
            } else {
                failure
            }
        })?;
        if !self.plan.flush_hicache_storage {
            return Ok(());
        }
        let path = "/hicache/storage-backend/clear";
        let caller = Caller::new(server.connect.clone(), server.target.clone());
        for tried in 1.. {
            let answer = caller.call(Method::POST, path, None, FLUSH_LIMIT).await;
            match answer {
                Ok(answer) if answer.is_ok() => break,
                Ok(answer) if tried == TRIES => {
                    let (status, said) = (answer.status, answer.excerpt());
                    let error = anyhow::anyhow!(
                        "--flush-hicache-storage: {path} answered {status}: {said}"
                    );
                    return Err(Failure::new(Code::Server, error).hint(
                        "the server needs --enable-hierarchical-cache with a storage backend",
                    ));
                }
                Err(error) if tried == TRIES => return Err(error).or_code(Code::Server),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
        Ok(())
    }

    /// Has the server's cache hold the beginnings of the prompts.
    async fn fill(
        &self,
        caller: &Caller<servebench_http::TcpConnect>,
        body: Bytes,
    ) -> Result<(), Failure> {
        let path = match self.plan.backend {
            BatchBackend::Sglang => "/generate",
            BatchBackend::Vllm => "/v1/completions",
        };
        let answer = caller.call(Method::POST, path, Some(body), SILENCE).await;
        let answer = answer.or_code(Code::Server)?;
        if answer.is_ok() {
            return Ok(());
        }
        let (status, said) = (answer.status, answer.excerpt());
        let error = anyhow::anyhow!("--cache-hit-rate: {path} answered {status}: {said}");
        Err(Failure::new(Code::Server, error))
    }

    /// Sends the request over a connection that is open already, and reads its stream to the end.
    fn send(
        &self,
        server: &LiveServer,
        batch: &Batch,
        request: Request,
    ) -> Result<Record, Failure> {
        let clock = TokioClock::default();
        let limits = Limits { idle: Some(SILENCE), ..Limits::default() };
        let protocol: Arc<dyn Protocol> = Arc::new(batch.clone());
        let connect = server.connect.clone();
        let backend = HttpBackend::new(clock.clone(), connect, &server.target, protocol, limits);
        let job = Job::burst(vec![request]);
        let progress = Arc::default();
        let sent = run_here(&job, backend, clock, &progress, self.stop);
        let finished = self.runtime.block_on(sent).or_code(Code::Bug)?;
        let record = finished.records.into_iter().next().ok_or_else(|| {
            Failure::new(Code::Interrupted, anyhow::anyhow!("interrupted before anything was sent"))
        })?;
        let Some(failure) = &record.reply.failure else { return Ok(record) };
        let (code, hint) = match (failure.kind, record.reply.status) {
            (FailureKind::Connect, _) => (Code::Server, Some("is the server up?")),
            (FailureKind::Status, Some(401 | 403)) => {
                (Code::Server, Some("give the server's key in OPENAI_API_KEY"))
            }
            (FailureKind::Status, Some(404 | 405)) => {
                (Code::Server, Some("is --backend what the server is?"))
            }
            _ => (Code::Requests, None),
        };
        let error = anyhow::anyhow!("the batch failed: {failure}");
        Err(Failure { hint: hint.map(str::to_owned), ..Failure::new(code, error) })
    }
}

/// The server's cache counters, if it shows any.
async fn counters(caller: &Caller<servebench_http::TcpConnect>) -> Option<CacheCounters> {
    let answer = caller.call(Method::GET, "/metrics", None, METRICS_LIMIT).await.ok()?;
    answer.is_ok().then(|| CacheCounters::of(&answer.body))
}

/// SHA-256 of what is sent: equal hash, equal workload.
fn sha256(path: &str, body: &[u8]) -> String {
    let mut hash = Sha256::new();
    hash.update((path.len() as u64).to_le_bytes());
    hash.update(path);
    hash.update(body);
    hash.finalize().iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// What SGLang says about itself.
pub(super) async fn server_info(server: &LiveServer, flag: &str) -> Result<Value, Failure> {
    server.control.server_info().await.map_err(|error| {
        let hint = match error {
            ControlError::Call(_) => format!(
                "is the server up? check {flag}; --launch 'CMD' starts one, --simulate needs none"
            ),
            ControlError::Unauthorized { .. } => "give the server's key in OPENAI_API_KEY".into(),
            _ => "is it SGLang? --backend vllm is for vLLM".into(),
        };
        Failure::new(Code::Server, error).hint(hint)
    })
}

/// The model that vLLM serves.
pub(super) async fn first_model(server: &LiveServer, flag: &str) -> Result<String, Failure> {
    let models = server.control.models().await.map_err(|error| {
        Failure::new(Code::Server, error).hint(format!("is the server up? check {flag}"))
    })?;
    let first = models.into_iter().next().map(|model| model.id);
    first.ok_or_else(|| {
        let url = server.control.url("/v1/models");
        Failure::new(Code::Server, anyhow::anyhow!("{url} lists no model"))
    })
}
