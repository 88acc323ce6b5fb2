//! What the client itself does to the numbers: the run's shape against a server with known times.
//!
//! The built-in server, in a process of its own, answers with the times that the warm-up saw. The
//! client measures it as it will measure the real one, and what it reports is compared with what the
//! server noted down. The difference holds the way through the kernel and what the built-in server
//! was late itself, so that the client is never made to look better than it is.

mod compare;
mod shape;

use super::measure::Phases;

use super::ticker;
use crate::exit::OrCode;
use crate::replica::Replica;
use crate::{Calibrate, Code, Failure, Io};
use compare::Errors;
use servebench_core::Record;
use servebench_report::Calibration;
use servebench_run::{Finished, Job, Stop, TokioClock, run_on_threads};
use servebench_sim::SimConfig;
use shape::Shape;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long requests are sent.
const SPAN: Duration = Duration::from_secs(3);
/// Entries of the server's log: what fits into one answer.
const TRUTH_LIMIT: usize = 1_000_000;

/// Calibrates if the plan, or the load, asks for it.
///
/// Where nobody asked, what keeps a calibration from being made is only said.
pub(super) fn calibrate(
    phases: &Phases<'_>,
    job: &Job,
    warm: Option<&Finished>,
    runtime: &Runtime,
    io: &Io,
) -> Result<Option<Calibration>, Failure> {
    let shape = Shape::seen(warm);
    let wish = phases.plan.client.calibrate;
    let asked = wish == Calibrate::Always;
    let unasked = !asked && (wish == Calibrate::Never || !is_heavy(phases, job, &shape));
    if unasked || job.requests.is_empty() {
        return Ok(None);
    }
    let Some(program) = phases.program else {
        let missing = anyhow::anyhow!("--calibrate: this program cannot start itself again");
        return if asked { Err(Failure::new(Code::Bug, missing)) } else { Ok(None) };
    };
    match measured(phases, program, job, &shape, runtime, io) {
        Ok(calibration) => {
            io.say(said(&calibration));
            Ok(Some(calibration))
        }
        Err(error) if asked => Err(error.context("cannot calibrate")).or_code(Code::Server),
        Err(error) => {
            io.say(format_args!("warning: cannot calibrate: {error:#}"));
            Ok(None)
        }
    }
}

/// Whether the load is heavy for this machine, and the run long enough for a calibration not to
/// matter. With one core client and known server would only measure how they share it.
fn is_heavy(phases: &Phases<'_>, job: &Job, shape: &Shape) -> bool {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = shape.load(job, phases.prepared.rate(phases.plan));
    cores > 1 && load.is_heavy(phases.workers)
}

fn measured(
    phases: &Phases<'_>,
    program: &Path,
    job: &Job,
    shape: &Shape,
    runtime: &Runtime,
    io: &Io,
) -> Result<Calibration, anyhow::Error> {
    let config = SimConfig { truth_limit: TRUTH_LIMIT, ..shape.server() };
    let server = Replica::start(program, &config, runtime)?;
    let job = shape.job(job, SPAN);
    io.say(format_args!(
        "calibrating: the same load on a built-in server with TTFT {:.1} ms and ITL {:.2} ms, for {} s at most",
        shape.ttft.as_secs_f64() * 1e3,
        shape.itl.as_secs_f64() * 1e3,
        SPAN.as_secs()
    ));
    let finished = {
        let progress = Arc::default();
        let _ticker = ticker(phases.plan, io, &progress, job.requests.len());
        let stop = Stop::default();
        let _bell = Bell::after(SPAN, &stop)?;
        let make = |clock: TokioClock| phases.backend_at(&server.target, &server.connect, clock);
        run_on_threads(&job, phases.workers, make, &progress, &stop)?
    };
    let truth = server.truth(runtime)?;
    let errors = Errors::between(&finished.records, &truth, shape.tokens_per_event);
    Ok(result(shape, &job, &finished, errors))
}

fn result(shape: &Shape, job: &Job, finished: &Finished, errors: Errors) -> Calibration {
    let duration = finished.end.as_secs_f64();
    let tokens = finished.records.iter().map(|record| tokens(record, shape)).sum::<u64>() as f64;
    let cpu: f64 = finished.loops.iter().map(|health| health.cpu.as_secs_f64()).sum();
    let per_token = (tokens > 0.0 && cpu > 0.0).then(|| cpu / tokens);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let workers = finished.loops.len().min(cores) as f64;
    // To the nanosecond.
    let ms = |seconds: f64| (seconds * 1e9).round() / 1e6;
    Calibration {
        duration,
        requests: errors.requests,
        in_flight: job.expected_in_flight().map(|in_flight| in_flight as u64),
        server_ttft_ms: ms(shape.ttft.as_secs_f64()),
        server_itl_ms: ms(shape.itl.as_secs_f64()),
        tokens_per_event: shape.tokens_per_event.into(),
        tokens_per_s: if duration > 0.0 { tokens / duration } else { 0.0 },
        ttft_bias_ms: errors.ttft.map(|error| ms(error.bias)),
        ttft_error_p99_ms: errors.ttft.map(|error| ms(error.p99)),
        itl_bias_ms: errors.itl.map(|error| ms(error.bias)),
        itl_error_p99_ms: errors.itl.map(|error| ms(error.p99)),
        cpu_per_token_us: per_token.map(|seconds| ms(seconds) * 1e3),
        saturation_tokens_per_s: per_token.map(|seconds| (workers / seconds).round()),
    }
}

fn tokens(record: &Record, shape: &Shape) -> u64 {
    let event = shape.tokens_per_event;
    record.reply.chunks.iter().map(|chunk| u64::from(chunk.tokens.unwrap_or(event))).sum()
}

fn said(calibration: &Calibration) -> String {
    let ms = |value: Option<f64>| value.map_or("?".into(), |value| format!("{value:.3} ms"));
    format!(
        "calibrated: TTFT off by {} on average, {} at p99; ITL by {} and {}; saturates at about {} \
         tokens/s",
        ms(calibration.ttft_bias_ms),
        ms(calibration.ttft_error_p99_ms),
        ms(calibration.itl_bias_ms),
        ms(calibration.itl_error_p99_ms),
        calibration.saturation_tokens_per_s.map_or("?".into(), |rate| format!("{rate:.0}")),
    )
}

/// Ends a run after a while, unless dropped before.
struct Bell {
    _quiet: mpsc::Sender<()>,
}

impl Bell {
    fn after(span: Duration, stop: &Stop) -> std::io::Result<Self> {
        let (quiet, rung) = mpsc::channel::<()>();
        let stop = stop.clone();
        let ring = move || {
            if rung.recv_timeout(span) == Err(mpsc::RecvTimeoutError::Timeout) {
                stop.drain();
                stop.abort();
            }
        };
        std::thread::Builder::new().name("calibration".into()).spawn(ring)?;
        Ok(Self { _quiet: quiet })
    }
}
