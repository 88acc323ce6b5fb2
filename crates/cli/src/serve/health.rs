//! How the client fared: what it used while it measured, and what that makes of its numbers.

use super::descriptors::Descriptors;
use crate::{Plan, network};
use rustix::time::{ClockId, clock_gettime};
use servebench_core::{Failure, FailureKind};
use servebench_metrics::verdict::{Calibrated, Delay, Evidence, Judgement, Stalls, Stamped, judge};
use servebench_metrics::{Aggregates, Bounds, Distribution};
use servebench_report::{Calibration, ClientHealth, TcpCounts};
use servebench_run::Finished;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

/// The process and its network before a run.
pub(crate) struct Before {
    at: Instant,
    cpu: Duration,
    tcp: Option<TcpCounts>,
}

/// What the process used during a run.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// Share of the processor time it may use.
    pub(crate) cpu_share: Option<f64>,
    pub(crate) tcp: Option<TcpCounts>,
}

impl Before {
    #[expect(clippy::disallowed_methods, reason = "a stopwatch for processor time")]
    pub(crate) fn now() -> Self {
        Self { at: Instant::now(), cpu: process_cpu(), tcp: network::read() }
    }

    pub(crate) fn used(self) -> Used {
        let after = Self::now();
        let wall = after.at.duration_since(self.at).as_secs_f64();
        let cpu = after.cpu.saturating_sub(self.cpu).as_secs_f64();
        let cores = available_parallelism().map_or(1, std::num::NonZero::get) as f64;
        Used {
            cpu_share: (wall > 0.0).then(|| (cpu / wall / cores).min(1.0)),
            tcp: self
                .tcp
                .zip(after.tcp)
                .and_then(|(before, after)| network::between(before, after)),
        }
    }
}

/// Processor time that this process has used so far, all its threads together.
fn process_cpu() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// All that is known of the client in one run.
pub(crate) struct Checkup<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) finished: &'a Finished,
    pub(crate) aggregates: &'a Aggregates,
    pub(crate) used: &'a Used,
    pub(crate) descriptors: Descriptors,
    pub(crate) calibration: Option<&'a Calibration>,
}

impl Checkup<'_> {
    /// The verdict and everything it rests on.
    pub(crate) fn health(&self) -> ClientHealth {
        let evidence = self.evidence();
        let Judgement { verdict, reasons } = judge(&evidence);
        ClientHealth {
            verdict,
            evidence: reasons.into_iter().map(|reason| reason.text).collect(),
            summary: evidence.summary(),
            stalls: evidence.stalls.map(|stalls| stalls.count),
            longest_stall: evidence.stalls.map(|stalls| stalls.longest),
            worker_cpu: evidence.worker_cpu,
            process_cpu: evidence.process_cpu,
            descriptor_limit: self.descriptors.limit,
            // None are needed only where nobody knows.
            descriptors_needed: Some(self.descriptors.needed).filter(|needed| *needed > 0),
            tcp: self.used.tcp,
            calibration: self.calibration.cloned(),
        }
    }

    fn evidence(&self) -> Evidence {
        let run = self.aggregates;
        let reception = run.reception.as_ref();
        let duration = self.finished.end.as_secs_f64();
        let share = |cpu: Duration| (cpu.as_secs_f64() / duration.max(1e-9)).min(1.0);
        let load = &self.plan.load;
        let all_at_once = load.request_rate.is_infinite() && !load.use_trace_timestamps;
        Evidence {
            duration,
            succeeded: run.completed,
            unsent: self.finished.unsent as u64,
            client_failures: self.client_failures(),
            closed_loop: all_at_once,
            // When all are due at once, being late is what the cap (or the send itself) means.
            lateness: self.lateness().filter(|_| !all_at_once).map(delay),
            turnaround_p99: run.turnaround.map(|turnaround| turnaround.p99),
            read_lag: reception.map(|reception| delay(reception.read_lag)),
            worker_cpu: self.finished.loops.iter().map(|health| share(health.cpu)).collect(),
            process_cpu: self.used.cpu_share,
            stalls: self.stalls(),
            ttft: run.ttft.map(|ttft| {
                let told = reception.map(|told| (told.exact_share_ttft, told.ttft));
                stamped(ttft, told.unwrap_or_default())
            }),
            itl: run.itl.map(|itl| {
                let told = reception.map(|told| (told.exact_share_itl, told.itl));
                stamped(itl, told.unwrap_or_default())
            }),
            e2e_median: run.own.e2e.map(|e2e| e2e.median),
            tokens_per_second: run.own.output_throughput,
            retransmits: self.used.tcp.map(|tcp| tcp.retransmits),
            calibrated: self.calibration.map(calibrated),
        }
    }

    /// Without a cap nothing but the client can keep a request from leaving on time, so that its
    /// whole wait counts, and not only that of its timer.
    fn lateness(&self) -> Option<Distribution> {
        let run = self.aggregates;
        if self.plan.load.max_concurrency.is_none() { run.queue_wait } else { run.lateness }
    }

    fn stalls(&self) -> Option<Stalls> {
        let loops = &self.finished.loops;
        let longest = loops.iter().map(|health| health.longest_stall).max()?;
        let total = loops.iter().map(|health| health.stalled).max()?;
        Some(Stalls {
            count: loops.iter().map(|health| health.stalls).sum(),
            longest: longest.as_secs_f64(),
            total: total.as_secs_f64(),
        })
    }

    fn client_failures(&self) -> u64 {
        let failures = self.finished.records.iter().filter_map(|r| r.reply.failure.as_ref());
        failures.filter(|failure| is_of_the_client(failure)).count() as u64
    }
}

/// System errors (on Linux) that say what a client has run out of: descriptors of its own, of the
/// system, local ports, buffers, memory.
const CLIENT_ERRORS: [i32; 5] = [24, 23, 99, 105, 12];

fn is_of_the_client(failure: &Failure) -> bool {
    let ran_out =
        || CLIENT_ERRORS.iter().any(|code| failure.detail.contains(&format!("(os error {code})")));
    match failure.kind {
        FailureKind::Client => true,
        FailureKind::Connect => ran_out(),
        _ => false,
    }
}

fn delay(distribution: Distribution) -> Delay {
    Delay { p50: distribution.median, p99: distribution.p99 }
}

fn stamped(latency: Distribution, (exact_share, bounds): (Option<f64>, Option<Bounds>)) -> Stamped {
    let p99 = latency.p99;
    let moves = |bounds: Bounds| (p99 - bounds.low.p99).max(bounds.high.p99 - p99).max(0.0);
    Stamped { median: latency.median, p99, exact_share, p99_moves: bounds.map(moves) }
}

fn calibrated(calibration: &Calibration) -> Calibrated {
    let seconds = |ms: Option<f64>| ms.map(|ms| ms / 1e3);
    Calibrated {
        saturation_tokens_per_second: calibration.saturation_tokens_per_s,
        ttft_bias: seconds(calibration.ttft_bias_ms),
        itl_error_p99: seconds(calibration.itl_error_p99_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_runs_out_of_is_its_own_failure() {
        let of = |kind, words: &str| is_of_the_client(&Failure::new(kind, words));
        let errors = CLIENT_ERRORS.map(std::io::Error::from_raw_os_error);
        for error in errors {
            assert!(of(FailureKind::Connect, &format!("connect: {error}")), "{error}");
        }
        assert!(of(FailureKind::Client, "a panic"));
        assert!(!of(FailureKind::Connect, "connect: Connection refused (os error 111)"));
        assert!(!of(FailureKind::Status, "Too many open files (os error 24)"));
    }

    #[test]
    fn processor_time_is_counted_while_it_is_used() {
        let before = Before::now();
        while process_cpu() < before.cpu + Duration::from_millis(2) {}
        let used = before.used();
        assert!(used.cpu_share.is_some_and(|share| share > 0.0 && share <= 1.0), "{used:?}");
    }
}
