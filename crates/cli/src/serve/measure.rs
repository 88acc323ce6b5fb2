//! The phases of a run: warm-up, flush, profile, measure, and what follows.

use super::calibrate::calibrate;
use super::descriptors::Descriptors;
use super::health::{Before, Used};
use super::ports;
use super::profiler::{Profiler, Stopping};
use super::requests::Announced;
use super::server::Server;
use super::ticker;
use crate::exit::OrCode;
use crate::prepare::Prepared;
use crate::progress::Ticker;
use crate::record::Recording;
use crate::signals::Interrupts;
use crate::{Code, Failure, Io, Plan};
use serde_json::Value;
use servebench_core::Record;
use servebench_http::{Balanced, Balancer, HttpBackend, Limits, Stamps, Target, TcpConnect};
use servebench_report::Calibration;
use servebench_run::{Finished, Job, Stop, TokioClock, run_on_threads};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// How long a result waits for the server's profiler.
const PROFILER_PATIENCE: Duration = Duration::from_secs(30);

/// What the phases work with.
pub(crate) struct Phases<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) prepared: &'a Prepared,
    pub(crate) server: &'a Server,
    pub(crate) workers: usize,
    /// This program, to be started once more.
    pub(crate) program: Option<&'a Path>,
    /// What happens around the measured requests, outside of their duration.
    pub(crate) beside: Option<&'a dyn Beside>,
    /// What records every byte that measured requests receive.
    pub(crate) recording: Option<&'a Recording>,
}

/// Something that happens around the measured requests.
pub(crate) trait Beside: Sync {
    /// Called when all is ready to be measured.
    fn start(&self, runtime: &Runtime);

    /// Called when the last response has come.
    fn stop(&self, runtime: &Runtime);
}

/// Several: the first to be started is the last to be stopped.
impl Beside for Vec<&dyn Beside> {
    fn start(&self, runtime: &Runtime) {
        for beside in self {
            beside.start(runtime);
        }
    }

    fn stop(&self, runtime: &Runtime) {
        for beside in self.iter().rev() {
            beside.stop(runtime);
        }
    }
}

/// What was measured, and what was learned around it.
pub(crate) struct Measured {
    pub(crate) finished: Finished,
    /// Wall-clock time of the start, seconds since 1970.
    pub(crate) started_at_unix: f64,
    /// Seconds that went by between the last response and the server's own report: the Python
    /// tool's duration holds them.
    pub(crate) after_seconds: f64,
    /// The server's own report.
    pub(crate) server_info: Option<Value>,
    /// Whether the prefix cache was emptied before.
    pub(crate) cache_flushed: bool,
    /// How long the one lookup of the server's name took.
    pub(crate) lookup: Duration,
    /// Where receive times come from.
    pub(crate) stamps: Stamps,
    /// The profiler, on its way to a stop.
    pub(crate) profiler: Option<Stopping>,
    /// Of a split server, which workers were profiled.
    pub(crate) profile_workers: Option<Value>,
    /// What this process used meanwhile.
    pub(crate) used: Used,
    pub(crate) descriptors: Descriptors,
    pub(crate) calibration: Option<Calibration>,
}

/// Warm-up → calibration → flush → profile start → measure → profile stop (under way) → server info.
///
/// Only *measure* is in the duration. Once it is over nothing that fails loses the result.
pub(crate) fn measure(
    phases: &Phases<'_>,
    runtime: &Runtime,
    stop: &Stop,
    interrupts: &Interrupts,
    io: &Io,
) -> Result<Measured, Failure> {
    let Phases { plan, prepared, server, .. } = phases;
    let warm = phases.warm_up(runtime, stop, io)?;
    let in_flight_guess = warm.as_ref().and_then(|warm| guess_in_flight(plan, prepared, warm));
    let endings = plan.load.endings.measured();
    let job = Job { in_flight_guess, endings, ..prepared.job.clone() };
    plan.load.endings.foretell(&job, io);
    let in_flight = job.expected_in_flight().unwrap_or(0) as u64;
    let descriptors = Descriptors::secure(in_flight, plan.simulate, io);
    ports::check(plan, &job, io);
    let calibration = calibrate(phases, &job, warm.as_ref(), runtime, io)?;
    if let Some(timeout) = plan.load.flush {
        for control in server.controls() {
            runtime.block_on(control.flush_cache(timeout)).map_err(|error| {
                Failure::new(Code::Server, error)
                    .hint("going on would measure a warm cache; leave --flush-cache out to do so")
            })?;
        }
        io.say("cache flushed");
    }
    interrupts.begin_measuring();
    let profile = plan.profile.as_ref();
    let profiler = profile.map(|it| Profiler::start(it, server, unix_seconds(), runtime, io));
    let profiler = profiler.transpose()?;
    let profile_workers = profiler.as_ref().and_then(Profiler::report);
    if let Some(beside) = phases.beside {
        beside.start(runtime);
    }
    let started_at_unix = unix_seconds();
    let before = Before::now();
    let finished = phases.run(&job, stop, io);
    let used = before.used();
    let over = now();
    if let Some(beside) = phases.beside {
        beside.stop(runtime);
    }
    let interrupted = interrupts.code().is_some();
    let mut profiler = profiler.and_then(|profiler| profiler.stop(interrupted));
    if let Some(profiler) = &mut profiler
        && !profiler.wait_for(PROFILER_PATIENCE)
    {
        io.say("the profiler is still writing its traces; the result is written meanwhile");
    }
    let finished = finished?;
    // Not every server has it, and a result without it is still a result.
    let server_info = runtime.block_on(server.control.server_info()).ok();
    Ok(Measured {
        finished,
        started_at_unix,
        after_seconds: over.elapsed().as_secs_f64(),
        server_info,
        cache_flushed: plan.load.flush.is_some(),
        lookup: server.connect.lookup(),
        stamps: server.stamps(),
        profiler,
        profile_workers,
        used,
        descriptors,
        calibration,
    })
}

/// One worker's backend for one server.
type OneBackend = HttpBackend<TokioClock, TcpConnect>;

impl Phases<'_> {
    fn warm_up(
        &self,
        runtime: &Runtime,
        stop: &Stop,
        io: &Io,
    ) -> Result<Option<Finished>, Failure> {
        let count = self.prepared.warmup.requests.len();
        if count == 0 {
            return Ok(None);
        }
        io.say(format_args!("warming up with {count} request(s)"));
        let endings = self.plan.load.endings.around();
        let job = Job { endings, ..self.prepared.warmup.clone() };
        let warm = self.run_silently(&job, stop)?;
        let failure = warm.records.iter().find_map(|record| record.reply.failure.as_ref());
        if let Some(failure) = failure
            && !warm.records.iter().any(Record::is_success)
        {
            let error = anyhow::anyhow!("the warm-up failed: {failure}");
            let offered = runtime.block_on(self.offered_models(&warm)).unwrap_or_default();
            return Err(Failure::new(Code::Server, error).hint(format!(
                "check --backend, --model and --base-url{offered}; --warmup-requests 0 skips it"
            )));
        }
        Ok(Some(warm))
    }

    /// The models there are, where a status 404 says that the one asked for may not be one of them.
    async fn offered_models(&self, warm: &Finished) -> Option<String> {
        warm.records.iter().find(|record| record.reply.status == Some(404))?;
        let models = self.server.control.models().await.ok()?;
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        (!ids.is_empty()).then(|| format!("; the server offers {}", ids.join(", ")))
    }

    fn run(&self, job: &Job, stop: &Stop, io: &Io) -> Result<Finished, Failure> {
        let total = job.total();
        io.say(format_args!("sending {total} requests to {}", self.server.names()));
        let progress = Arc::default();
        let _ticker = ticker(self.plan, io, &progress, total);
        let _watchdog = Ticker::watchdog(io, &progress);
        if self.plan.report.print_requests {
            let announced = Announced::new(io);
            let balancer = self.balancer(job);
            let make = |clock: TokioClock| announced.around(self.observed(&clock, &balancer));
            return run_on_threads(job, self.workers, make, &progress, stop).or_code(Code::Bug);
        }
        let balancer = self.balancer(job);
        let make = |clock: TokioClock| self.observed(&clock, &balancer);
        run_on_threads(job, self.workers, make, &progress, stop).or_code(Code::Bug)
    }

    /// Runs a job of which nothing is shown or recorded.
    fn run_silently(&self, job: &Job, stop: &Stop) -> Result<Finished, Failure> {
        let balancer = self.balancer(job);
        let make = |clock: TokioClock| self.backend(&clock, &balancer, |backend| backend);
        run_on_threads(job, self.workers, make, &Arc::default(), stop).or_code(Code::Bug)
    }

    /// Deals the requests of `job` to the servers there are.
    fn balancer(&self, job: &Job) -> Arc<Balancer> {
        let policy = self.plan.balance.unwrap_or_default().into();
        Arc::new(Balancer::new(policy, self.server.ways().count(), &job.requests))
    }

    /// One worker's backend for all servers, recorded if that is asked for.
    fn observed(&self, clock: &TokioClock, balancer: &Arc<Balancer>) -> Balanced<OneBackend> {
        self.backend(clock, balancer, |backend| match self.recording {
            Some(recording) => backend.with_observer(recording.observer()),
            None => backend,
        })
    }

    /// One worker's backend for all servers, each made into what it is to be.
    fn backend(
        &self,
        clock: &TokioClock,
        balancer: &Arc<Balancer>,
        each: impl Fn(OneBackend) -> OneBackend,
    ) -> Balanced<OneBackend> {
        let backends = self
            .server
            .ways()
            .map(|(target, connect)| each(self.backend_at(target, connect, clock.clone())))
            .collect();
        Balanced::new(backends, Arc::clone(balancer))
    }

    /// A backend that differs from the measured one in nothing but its server.
    pub(crate) fn backend_at(
        &self,
        target: &Target,
        connect: &TcpConnect,
        clock: TokioClock,
    ) -> OneBackend {
        let protocol = Arc::clone(&self.prepared.protocol);
        let limits = Limits {
            keep_alive: !self.plan.load.cold_connections,
            reader: self.plan.load.http_reader.into(),
            ..self.plan.limits.limits()
        };
        HttpBackend::new(clock, connect.clone(), target, protocol, limits)
    }
}

/// Most connections that are opened on a guess.
const GUESS_LIMIT: f64 = 4096.0;

/// How many requests an open loop will have under way, as far as the warm-up can tell.
fn guess_in_flight(plan: &Plan, prepared: &Prepared, warm: &Finished) -> Option<usize> {
    let rate = Some(prepared.rate(plan)).filter(|rate| rate.is_finite())?;
    let requests = &prepared.job.requests;
    let outputs: f64 = requests.iter().map(|request| f64::from(request.output_len)).sum();
    let latency = warm
        .records
        .iter()
        .find_map(|record| stretched_latency(record, outputs / requests.len() as f64))?;
    // Little's law, and a quarter more.
    Some((rate * latency * 1.25).ceil().clamp(1.0, GUESS_LIMIT) as usize)
}

/// The latency that a request would have had with `outputs` chunks, in seconds.
fn stretched_latency(record: &Record, outputs: f64) -> Option<f64> {
    let reply = &record.reply;
    let (first, last) = (reply.first_token()?, reply.last_token()?);
    let gaps = reply.chunks.len().saturating_sub(1).max(1) as f64;
    let ttft = first.secs_since(record.dispatched);
    Some(ttft + last.secs_since(first) / gaps * (outputs - 1.0).max(0.0))
}

/// Wall-clock time, to the millisecond.
fn unix_seconds() -> f64 {
    jiff::Timestamp::now().as_millisecond() as f64 / 1e3
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch around control calls, not the run's")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::Stamp;

    #[test]
    fn a_short_warm_up_tells_the_latency_of_a_long_request() {
        let mut record = Record { dispatched: Stamp::from_millis(100), ..Record::default() };
        assert_eq!(stretched_latency(&record, 10.0), None);
        for ms in [150, 160, 170] {
            record.reply.push_chunk(Stamp::from_millis(ms), None, 0, "t");
        }
        let near = |value: Option<f64>, want: f64| {
            assert!((value.unwrap() - want).abs() < 1e-9, "{value:?} is not {want}");
        };
        near(stretched_latency(&record, 3.0), 0.070);
        near(stretched_latency(&record, 101.0), 0.050 + 100.0 * 0.010);
        near(stretched_latency(&record, 0.0), 0.050);
    }
}
