//! Records to numbers, in parts that can be joined.

use crate::goodput::Met;
use crate::peaks::{Buckets, peak_overlap};
use crate::reception::Reception;
use crate::stats::sum;
use crate::streams::{Streamed, Streams};
use crate::sums::Sums;
use crate::{Aggregates, Bounds, Distribution, ItlRule, Measured, Slo, View};
use servebench_core::ReadLag;
use std::time::Duration;

/// What a run's numbers depend on besides its records.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How the gap before a chunk becomes inter-token samples.
    pub itl_rule: ItlRule,
    /// Objectives, at most one per metric, in the order in which they are reported.
    pub slos: Vec<Slo>,
    /// Seconds from the first send to the end of the last response. `None`: from the first dispatch
    /// to the last thing any record knows of.
    pub duration: Option<f64>,
    /// The Python tool's duration, which also holds what it does after the last response. `None`:
    /// the same as [`duration`](Self::duration).
    pub upstream_duration: Option<f64>,
}

/// A fold over records that can be split over workers and merged.
///
/// Law: adding all records to one fold, or to several that are then merged in any order, gives the
/// same [`Aggregates`], to the last bit.
///
/// The records are borrowed until [`finish`](Self::finish), since the peaks need to know the whole
/// run. The memory on top of them is a few numbers for each request and one for each *different* gap
/// between tokens: nothing is kept for each token, so that a million streams can be aggregated where
/// they can be held.
#[derive(Clone, Debug, Default)]
pub struct Aggregate<'a> {
    options: Options,
    requests: Vec<Measured<'a>>,
}

impl<'a> Aggregate<'a> {
    /// An empty fold. Folds that are to be merged need the same options.
    pub fn new(options: &Options) -> Self {
        Self { options: options.clone(), requests: Vec::new() }
    }

    /// Takes one record in.
    pub fn add(&mut self, request: Measured<'a>) {
        self.requests.push(request);
    }

    /// Takes in what another fold took in.
    pub fn merge(&mut self, other: Self) {
        self.requests.extend(other.requests);
    }

    /// The numbers of all that was taken in.
    pub fn finish(self) -> Aggregates {
        let Self { options, mut requests } = self;
        requests.sort_unstable_by_key(|request| !request.record.is_success());
        let completed = requests.partition_point(|request| request.record.is_success());
        let (requests, successes) = (&requests, &requests[..completed]);
        let completed = completed as u64;
        let mut sums = Sums::default();
        for request in requests {
            sums.add(request, &options.slos);
        }
        let measured = sums.span.map(|span| span.end.secs_since(span.first_dispatch));
        let duration = options.duration.or(measured);
        let view = |duration, counts| view(&sums, completed, duration, counts, &options.slos);
        let own = view(duration, (sums.output, &sums.met));
        let upstream_duration = options.upstream_duration.or(duration);
        let upstream = view(upstream_duration, (sums.upstream_output, &sums.upstream_met));
        let (own, upstream, itls) = with_streams(own, upstream, options.itl_rule, successes);
        let retokenized = sums.retokenized;
        let per_second = |tokens: u64| quotient(tokens as f64, duration).filter(|_| completed > 0);
        let times = |of: fn(&Measured<'_>) -> Option<Duration>| {
            each(requests, |request| of(request).map(|time| time.as_secs_f64()))
        };
        Aggregates {
            completed,
            failed: sums.requests - completed,
            reconnects: sums.reconnects,
            retries: sums.retries,
            total_input_tokens: sums.input,
            total_input_tokens_server: sums.cache.prompt_tokens,
            total_output_tokens_retokenized: retokenized,
            output_throughput_retokenized: retokenized.and_then(per_second),
            total_throughput_retokenized: retokenized
                .and_then(|tokens| per_second(sums.input + tokens)),
            own: View {
                e2e: each(successes, Measured::latency),
                tpot: each(successes, Measured::tpot),
                ..own
            }
            .with_concurrency(),
            upstream: View {
                e2e: each(successes, Measured::stream_latency),
                tpot: each(successes, Measured::upstream_tpot),
                ..upstream
            }
            .with_concurrency(),
            ttft: each(successes, Measured::ttft),
            itl: itls.itl,
            token_itl: itls.token_itl,
            ttft_intended: each(successes, Measured::ttft_from_intended),
            e2e_intended: each(successes, Measured::latency_from_intended),
            connect: times(|request| request.record.reply.rare().connect),
            tls: times(|request| request.record.reply.rare().tls),
            lateness: times(|request| request.record.lateness),
            turnaround: times(|request| request.record.turnaround),
            queue_wait: each(requests, |request| Some(request.queue_wait())),
            reception: reception(requests, successes, &itls),
            achieved_request_rate: sums.span.and_then(|span| {
                let gaps = sums.requests.checked_sub(1)?;
                let time = span.last_dispatch.secs_since(span.first_dispatch);
                quotient(gaps as f64, Some(time))
            }),
            accept_length: {
                let mut steps: Vec<f64> =
                    successes.iter().filter_map(Measured::verify_steps).collect();
                steps.sort_unstable_by(f64::total_cmp);
                quotient(sums.accepted as f64, Some(sum(steps.as_slice(), &|steps| steps)))
            },
            cache: sums.cache,
            failures: sums.failures,
        }
    }
}

/// The distribution of one number per request, over those that have it.
fn each<T>(requests: &[T], of: impl Fn(&T) -> Option<f64>) -> Option<Distribution> {
    let mut samples = Vec::with_capacity(requests.len());
    samples.extend(requests.iter().filter_map(of));
    Distribution::of(&mut samples)
}

/// Adds the peaks, and reads the token streams for it.
fn with_streams(
    own: View,
    upstream: View,
    rule: ItlRule,
    successes: &[Measured<'_>],
) -> (View, View, Streamed) {
    let mut streams = Streams::new(rule, successes);
    let mut buckets = Buckets::default();
    let dispatched = successes.iter().map(|request| request.record.dispatched);
    let origin = dispatched.min().unwrap_or_default();
    for request in successes {
        let start = request.record.dispatched.secs_since(origin);
        if let Some(latency) = request.stream_latency() {
            buckets.add_request(start, start + latency);
        }
        streams.add(request, origin, &mut buckets);
    }
    let open = |request: &Measured<'_>| Some((request.record.dispatched, request.end()?));
    let (streamed, second) = streams.finish();
    let own = View {
        max_output_tokens_per_s: second.find(successes),
        max_concurrent_requests: peak_overlap(successes.iter().filter_map(open)),
        ..own
    };
    let upstream = View {
        max_output_tokens_per_s: buckets.peak_tokens(),
        max_concurrent_requests: buckets.peak_requests(),
        ..upstream
    };
    (own, upstream, streamed)
}

/// How true the stamps are, where the kernel gave them.
fn reception(
    requests: &[Measured<'_>],
    successes: &[Measured<'_>],
    itls: &Streamed,
) -> Option<Reception> {
    let lags = || requests.iter().filter_map(|request| request.record.reply.read_lag);
    let most = |of: fn(ReadLag) -> Duration| lags().map(of).max().unwrap_or_default().as_secs_f64();
    let mut means: Vec<f64> = lags().map(|lag| lag.mean().as_secs_f64()).collect();
    let read_lag = Distribution::of(&mut means)?;
    let ttfts = successes.iter().filter(|request| request.ttft().is_some()).count();
    let exact = successes.iter().filter(|request| request.ttft_is_exact() == Some(true)).count();
    Some(Reception {
        read_lag,
        longest_read_lag: most(|lag| lag.longest()),
        clock_error: most(|lag| lag.clock_error()),
        bounded_chunks: itls.bounded_chunks,
        exact_share_ttft: (ttfts > 0).then(|| exact as f64 / ttfts as f64),
        exact_share_itl: itls.exact_share,
        ttft: Bounds::of(successes.iter().filter_map(Measured::ttft_bounds)),
        itl: itls.bounds,
        e2e: itls.e2e_bounds(successes),
    })
}

/// A view's rates and goodput; what needs more than sums is left out.
fn view(
    sums: &Sums,
    completed: u64,
    duration: Option<f64>,
    (output, met): (u64, &Met),
    slos: &[Slo],
) -> View {
    let per_second = |amount| quotient(amount, duration).filter(|_| completed > 0);
    View {
        duration,
        total_output_tokens: output,
        request_throughput: per_second(completed as f64),
        input_throughput: per_second(sums.input as f64),
        output_throughput: per_second(output as f64),
        total_throughput: per_second((sums.input + output) as f64),
        goodput: met.finish(slos, (completed > 0).then_some(sums.requests), per_second),
        ..View::default()
    }
}

impl View {
    /// `Σ latency / duration`.
    fn with_concurrency(self) -> Self {
        let busy = self.e2e.map(|e2e| e2e.mean * e2e.count as f64);
        let concurrency = busy.and_then(|busy| quotient(busy, self.duration));
        Self { concurrency, ..self }
    }
}

/// `amount / divisor`, unless there is nothing to divide by.
fn quotient(amount: f64, divisor: Option<f64>) -> Option<f64> {
    divisor.filter(|divisor| *divisor > 0.0).map(|divisor| amount / divisor)
}

/// The numbers of a whole run at once.
pub fn aggregate<'a>(
    requests: impl IntoIterator<Item = Measured<'a>>,
    options: &Options,
) -> Aggregates {
    Aggregate { options: options.clone(), requests: requests.into_iter().collect() }.finish()
}
