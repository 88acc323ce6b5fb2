//! What happens around and beside the measured requests: counters, profiler, probes.

use super::VllmPlan;
use super::counters::{Counters, LookedUp};
use super::prepare::request;
use super::server::counters;
use super::session::Session;
use crate::Io;
use crate::prepare::Prepared;
use crate::serve::Beside;
use servebench_control::Control;
use servebench_core::{Prompt, Protocol, Record, Sample, Stamp};
use servebench_http::{Caller, HttpBackend, Limits, TcpConnect};
use servebench_metrics::{Distribution, Measured};
use servebench_report::vllm::{Diffusion, ProbeStats, Speculation};
use servebench_run::{Job, Stop, TokioClock, run_here};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::runtime::Runtime;

/// Probes that are planned at a time.
const PROBES: usize = 1000;

/// Around one run.
pub(super) struct Around<'a> {
    pub(super) plan: &'a VllmPlan,
    pub(super) control: &'a Control<TcpConnect>,
    pub(super) caller: &'a Caller<TcpConnect>,
    pub(super) connect: &'a TcpConnect,
    pub(super) protocol: Arc<dyn Protocol>,
    /// The first row, for backends that take no plain text.
    pub(super) first: Option<&'a Sample>,
    pub(super) io: &'a Io,
    pub(super) state: Mutex<State>,
}

/// What was learned around a run.
#[derive(Default)]
pub(super) struct State {
    before: Option<Counters>,
    probes: Option<Probes>,
    pub(super) speculation: Option<Speculation>,
    pub(super) diffusion: Option<Diffusion>,
    pub(super) prefix_cache: Option<LookedUp>,
    pub(super) probe: Option<ProbeStats>,
}

impl Beside for Around<'_> {
    fn start(&self, runtime: &Runtime) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if self.plan.load.profile {
            self.io.say("starting profiler");
            match runtime.block_on(self.control.start_configured_profile()) {
                Ok(()) => self.io.say("profiler started"),
                Err(error) => self.io.say(format_args!("warning: no profile: {error}")),
            }
        }
        state.before = runtime.block_on(counters(self.caller));
        let rate = self.plan.load.probe_request_rate;
        if rate > 0.0 {
            state.probes = self.probes(rate);
        }
    }

    fn stop(&self, runtime: &Runtime) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // The run is over and its duration taken: probes under way may end in peace.
        state.probe = state.probes.take().and_then(Probes::finish);
        let after = runtime.block_on(counters(self.caller));
        if let Some((before, after)) = state.before.take().zip(after) {
            state.speculation = after.speculation(&before);
            state.diffusion = after.diffusion(&before);
            state.prefix_cache = after.prefix_cache(&before);
        }
        if self.plan.load.profile {
            match runtime.block_on(self.control.stop_profile()) {
                Ok(()) => self.io.say("profiler stopped"),
                Err(error) => self.io.say(format_args!("warning: the profiler: {error}")),
            }
        }
    }
}

impl<'a> Around<'a> {
    /// Around the requests of `prepared`.
    pub(super) fn new(session: &'a Session<'a>, prepared: &'a Prepared) -> Self {
        Self {
            plan: session.plan,
            control: &session.server.control,
            caller: &session.caller,
            connect: &session.server.connect,
            protocol: Arc::clone(&prepared.protocol),
            first: prepared.samples.first(),
            io: session.io,
            state: Mutex::new(State::default()),
        }
    }

    /// Starts to send probes, from a thread with connections of its own: they neither wait for the cap
    /// nor for each other.
    fn probes(&self, rate: f64) -> Option<Probes> {
        let sample = Sample {
            prompt: Prompt::Text("Hi".to_owned()),
            prompt_len: 1,
            output_len: 1,
            ..Sample::default()
        };
        let sample = match self.first.filter(|_| self.plan.backend.refuses(&sample).is_some()) {
            Some(first) => Sample { output_len: 1, ..first.clone() },
            None => sample,
        };
        let probe = request(0, self.protocol.as_ref(), &sample, None);
        let requests = vec![probe; PROBES];
        let schedule: Vec<Stamp> =
            (0..PROBES).map(|i| Stamp::from_secs_f64(i as f64 / rate)).collect();
        let job = Job { schedule: schedule.into(), ..Job::burst(requests) };
        let (target, connect) = (self.caller.target().clone(), self.connect.clone());
        let (protocol, stop) = (Arc::clone(&self.protocol), Stop::default());
        let ordered = stop.clone();
        let send = move || {
            let mut records = Vec::new();
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build()
            else {
                return records;
            };
            while !ordered.is_ordered() {
                let clock = TokioClock::default();
                let (connect, protocol) = (connect.clone(), Arc::clone(&protocol));
                let backend =
                    HttpBackend::new(clock.clone(), connect, &target, protocol, Limits::default());
                let progress = Arc::default();
                match runtime.block_on(run_here(&job, backend, clock, &progress, &ordered)) {
                    Ok(finished) => records.extend(finished.records),
                    Err(_) => break,
                }
            }
            records
        };
        let thread = std::thread::Builder::new().name("probes".into()).spawn(send).ok()?;
        self.io.say(format_args!("probes: {rate} requests/s"));
        Some(Probes { stop, thread })
    }
}

/// Probes under way.
struct Probes {
    stop: Stop,
    thread: JoinHandle<Vec<Record>>,
}

impl Probes {
    /// Sends no more; `None` if none succeeded.
    fn finish(self) -> Option<ProbeStats> {
        self.stop.drain();
        let records = self.thread.join().ok()?;
        let successes = records.iter().filter(|record| record.is_success());
        let mut latencies: Vec<f64> =
            successes.filter_map(|record| Measured::from(record).latency()).collect();
        let completed = latencies.len() as u64;
        let latency = Distribution::of(&mut latencies)?;
        Some(ProbeStats { completed, failed: records.len() as u64 - completed, latency })
    }
}
