//! How late requests leave this machine: Poisson arrivals against a backend that answers at once.
//!
//! ```text
//! cargo run --release -p servebench-run --example arrivals -- [RATE [WORKERS [SECONDS [TOKENS]]]]
//! ```
//!
//! Prints percentiles of the lateness in microseconds, how far the gaps between the requests that left
//! are from those of a Poisson process (as a Kolmogorov-Smirnov distance, with the bound that all but
//! one in a hundred samples of one keep), and what the workers' event loops cost. With
//! TOKENS above 0 each request goes on as a stream of that many tokens, 10 ms apart by the runtime's
//! own timer, so that the workers have something else to do: 5 µs for each, as a read takes.

use servebench_arrival::{Poisson, Rate};
use servebench_core::random::NumpyLegacy;
use servebench_core::{Backend, Clock, Reply, Request, Stamp};
use servebench_run::{Job, Stop, TokioClock, run_on_threads};
use std::error::Error;
use std::io::{Write, stdout};
use std::sync::Arc;
use std::time::Duration;

/// Answers at once, or with some tokens.
struct Stream {
    clock: TokioClock,
    tokens: u32,
}

impl Backend for Stream {
    async fn send(&self, _request: &Request, reply: &mut Reply) {
        reply.sent = Some(self.clock.now());
        for token in 0..self.tokens {
            let next = self.clock.now().offset() + Duration::from_millis(10);
            self.clock.sleep_until(Stamp::from(next)).await;
            let (read, cost) = (self.clock.now(), Duration::from_micros(5));
            while self.clock.now().since(read) < cost {}
            reply.push_chunk(read, Some(token), 0, "");
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<f64> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let argument = |index: usize, default| arguments.get(index).copied().unwrap_or(default);
    let (rate, seconds) = (argument(0, 1000.0), argument(2, 5.0));
    let (workers, tokens) = (argument(1, 1.0) as usize, argument(3, 0.0) as u32);

    let count = ((rate * seconds) as usize).max(1);
    let mut draws = NumpyLegacy::new(1);
    let schedule: Vec<Stamp> =
        Poisson::new(Rate::per_second(rate)?, &mut draws).take(count).collect();
    let requests = (0..count as u64).map(|id| Request { id, ..Request::default() }).collect();
    let job = Job { schedule: schedule.into(), ..Job::burst(requests) };
    let make = |clock| Stream { clock, tokens };
    let done = run_on_threads(&job, workers, make, &Arc::default(), &Stop::default())?;

    let mut lateness: Vec<f64> = done
        .records
        .iter()
        .map(|record| record.dispatched.since(record.intended).as_secs_f64() * 1e6)
        .collect();
    lateness.sort_by(f64::total_cmp);
    let at = |share: f64| lateness[((lateness.len() - 1) as f64 * share).round() as usize];
    let mut out = stdout().lock();
    let (p50, p99, p999, max) = (at(0.5), at(0.99), at(0.999), at(1.0));
    writeln!(
        out,
        "{rate}/s, {workers} worker(s): p50 {p50:.1}, p99 {p99:.1}, p99.9 {p999:.1}, max {max:.1} us"
    )?;
    let mut left: Vec<Stamp> = done.records.iter().map(|record| record.dispatched).collect();
    left.sort_unstable();
    let (distance, bound) = (distance(&left, rate), 1.63 / (count as f64).sqrt());
    writeln!(out, "  distance from a Poisson process {distance:.4}, bound {bound:.4}")?;
    let span = done.end.as_secs_f64();
    for health in &done.loops {
        let (cpu, turns) = (health.cpu.as_secs_f64() / span, health.turns as f64 / span);
        writeln!(out, "  {:.2} % of a core, {turns:.0} turns/s, {health:?}", cpu * 100.0)?;
    }
    Ok(())
}

/// The Kolmogorov-Smirnov distance of the gaps from exponential ones.
fn distance(left: &[Stamp], rate: f64) -> f64 {
    let mut gaps: Vec<f64> = left.windows(2).map(|pair| pair[1].secs_since(pair[0])).collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let at_rank = |(rank, gap): (usize, &f64)| {
        let share = 1.0 - (-gap * rate).exp();
        (share - rank as f64 / n).max((rank + 1) as f64 / n - share)
    };
    gaps.iter().enumerate().map(at_rank).fold(0.0, f64::max)
}
