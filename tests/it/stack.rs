//! The whole stack (engine, HTTP, decoders, metrics) against the simulated server, in memory and in
//! virtual time: every figure is exact.

use servebench::backends::{BackendKind, Family, GenerateOptions};
use servebench::core::{FailureKind, Request, Sample, Stamp};
use servebench::http::{FnConnect, HttpBackend, Limits, Stream, Target};
use servebench::metrics::{Aggregates, ItlRule, Measured, Options, aggregate};
use servebench::run::{Finished, Job, Stop, TokioClock, run_here};
use servebench::sim::{FaultRule, Sim, SimConfig, Timing, parse_faults};
use std::sync::Arc;
use std::time::Duration;

const TTFT: u64 = 250;
const ITL: u64 = 10;
const TOKENS: u32 = 4;
const E2E: u64 = TTFT + (TOKENS as u64 - 1) * ITL;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Measures a simulated server with fixed times.
struct Stack {
    kind: BackendKind,
    stream: bool,
    due_ms: Vec<u64>,
    max_concurrency: Option<usize>,
    faults: Vec<FaultRule>,
    limits: Limits,
}

impl Stack {
    fn new(kind: BackendKind) -> Self {
        Self {
            kind,
            stream: true,
            due_ms: vec![0],
            max_concurrency: None,
            faults: Vec::new(),
            limits: Limits::default(),
        }
    }

    fn run(self) -> Finished {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime
            .expect("a runtime")
            .block_on(async {
                let options = GenerateOptions {
                    model: "sim".into(),
                    stream: self.stream,
                    ..GenerateOptions::default()
                };
                let protocol = self.kind.protocol(options);
                let sample =
                    Sample { prompt: "Hello".into(), output_len: TOKENS, ..Sample::default() };
                let request = |id| Request {
                    id,
                    body: protocol.encode(&sample, None),
                    prompt_len: 5,
                    output_len: TOKENS,
                    ..Request::default()
                };
                let job = Job {
                    schedule: self.due_ms.iter().copied().map(Stamp::from_millis).collect(),
                    max_concurrency: self.max_concurrency,
                    ..Job::burst((0..self.due_ms.len() as u64).map(request).collect())
                };
                let timing = Timing::canned(ms(TTFT), ms(ITL));
                let sim =
                    Sim::new(SimConfig { timing, faults: self.faults, ..SimConfig::default() });
                let connect = FnConnect::new(move || {
                    let (client, server) = tokio::io::duplex(1 << 20);
                    let sim = sim.clone();
                    tokio::task::spawn_local(async move { sim.serve_connection(server).await });
                    async move { Ok(Box::new(client) as Box<dyn Stream>) }
                });
                let target = Target::new("http://sim".parse().expect("a URL"));
                let clock = TokioClock::default();
                let backend = HttpBackend::new(
                    clock.clone(),
                    connect,
                    &target,
                    Arc::clone(&protocol),
                    self.limits,
                );
                run_here(&job, backend, clock, &Arc::default(), &Stop::default()).await
            })
            .expect("a run")
    }
}

fn numbers(finished: &Finished) -> Aggregates {
    let options = Options {
        itl_rule: ItlRule::PerChunk,
        duration: Some(finished.end.as_secs_f64()),
        ..Options::default()
    };
    aggregate(finished.records.iter().map(Measured::from), &options)
}

fn near(value: Option<f64>, want: f64) {
    let value = value.expect("a value");
    assert!((value - want).abs() < 1e-9, "{value} is not {want}");
}

#[test]
fn every_backend_reports_exact_times_and_counts() {
    for kind in BackendKind::all().filter(|kind| kind.info().family != Family::Embeddings) {
        let finished = Stack::new(kind).run();
        let [record] = finished.records.as_slice() else { panic!("{kind}: one record") };
        assert_eq!(record.reply.failure, None, "{kind}");
        let stamps: Vec<_> = record.reply.chunks.iter().map(|chunk| chunk.at).collect();
        assert_eq!(stamps, [250, 260, 270, 280].map(Stamp::from_millis), "{kind}");
        // Triton counts nothing: there, each chunk is taken for a token.
        let counts = kind.info().family != Family::Triton;
        assert_eq!(record.reply.completion_tokens, counts.then_some(TOKENS), "{kind}");
        assert_eq!(record.reply.prompt_tokens, counts.then_some(5), "{kind}");
        assert_eq!(record.reply.text.len(), TOKENS as usize, "{kind}");

        let run = numbers(&finished);
        near(run.ttft.map(|ttft| ttft.mean), 0.250);
        near(run.itl.map(|itl| itl.mean), 0.010);
        assert_eq!(run.token_itl.is_some(), counts, "{kind}");
        near(run.token_itl.map_or(Some(0.010), |itl| Some(itl.p99)), 0.010);
        near(run.own.tpot.map(|tpot| tpot.mean), 0.010);
        near(run.own.e2e.map(|e2e| e2e.mean), 0.280);
        near(run.own.duration, 0.280);
        near(run.own.output_throughput, f64::from(TOKENS) / 0.280);
    }
}

#[test]
fn an_embedding_has_a_latency_alone() {
    for kind in [BackendKind::SglangEmbedding, BackendKind::VllmEmbedding] {
        let finished = Stack::new(kind).run();
        let run = numbers(&finished);
        assert_eq!((run.completed, run.own.total_output_tokens), (1, 0), "{kind}");
        near(run.own.e2e.map(|e2e| e2e.mean), 0.250);
        assert!(run.ttft.is_none() && run.itl.is_none() && run.own.tpot.is_none(), "{kind}");
        assert_eq!(run.own.max_output_tokens_per_s, None, "{kind}");
    }
}

#[test]
fn a_whole_reply_has_one_moment() {
    for kind in [BackendKind::Sglang, BackendKind::SglangOai, BackendKind::SglangOaiChat] {
        let finished = Stack { stream: false, ..Stack::new(kind) }.run();
        let run = numbers(&finished);
        assert_eq!((run.completed, run.own.total_output_tokens), (1, u64::from(TOKENS)), "{kind}");
        near(run.ttft.map(|ttft| ttft.mean), E2E as f64 / 1e3);
        near(run.own.e2e.map(|e2e| e2e.mean), E2E as f64 / 1e3);
        assert_eq!(run.itl, None, "{kind}");
    }
}

#[test]
fn a_cap_turns_arrivals_into_a_queue_that_is_measured() {
    // Four arrivals 100 ms apart, one at a time, 280 ms each.
    let stack = Stack {
        due_ms: vec![0, 100, 200, 300],
        max_concurrency: Some(1),
        ..Stack::new(BackendKind::VllmChat)
    };
    let run = numbers(&stack.run());
    near(run.own.e2e.map(|e2e| e2e.max), 0.280);
    // Request i leaves at 280 i, 180 i later than due.
    near(run.queue_wait.map(|wait| wait.max), 0.540);
    near(run.e2e_intended.map(|e2e| e2e.max), 0.820);
    near(run.ttft_intended.map(|ttft| ttft.mean), 0.250 + 0.270);
    near(run.own.duration, 1.120);
    near(run.own.concurrency, 1.0);
    assert_eq!(run.own.max_concurrent_requests, Some(1));
}

#[test]
fn a_burst_is_served_at_once_and_peaks_are_exact() {
    let stack = Stack { due_ms: vec![0; 16], ..Stack::new(BackendKind::Sglang) };
    let run = numbers(&stack.run());
    assert_eq!(run.own.max_concurrent_requests, Some(16));
    assert_eq!(run.own.max_output_tokens_per_s, Some(16 * u64::from(TOKENS)));
    near(run.own.duration, 0.280);
    assert_eq!(run.connect, None, "connections were open before the clock started");
}

#[test]
fn what_came_before_a_fault_is_kept_under_its_kind() {
    let faults = r#"[
        {"when": {"index": [0]}, "action": {"cut": {"after_tokens": 2}}},
        {"when": {"index": [1]}, "action": {"stall": {"at_token": 2}}},
        {"when": {"index": [2]}, "action": {"status": {"code": 503, "body": "busy"}}}
    ]"#;
    let stack = Stack {
        due_ms: vec![0, 1000, 3000, 4000],
        faults: parse_faults(faults).expect("faults"),
        limits: Limits { idle: Some(ms(500)), ..Limits::default() },
        ..Stack::new(BackendKind::SglangOaiChat)
    };
    let finished = stack.run();
    let kinds: Vec<_> =
        finished.records.iter().map(|r| r.reply.failure.as_ref().map(|f| f.kind)).collect();
    use FailureKind::{Status, Timeout, Truncated};
    assert_eq!(kinds, [Some(Truncated), Some(Timeout), Some(Status), None]);
    let chunks: Vec<_> = finished.records.iter().map(|r| r.reply.chunks.len()).collect();
    assert_eq!(chunks, [2, 2, 0, 4]);
    let run = numbers(&finished);
    assert_eq!((run.completed, run.failed), (1, 3));
    near(run.ttft.map(|ttft| ttft.max), 0.250);
}
