//! Records to numbers, in parts that can be joined.

use crate::goodput::{Met, Observed};
use crate::peaks::{Buckets, peak_overlap, peak_per_second};
use crate::stats::pairwise_sum;
use crate::{
    Aggregates, CacheReport, Distribution, FailureTally, Gap, ItlRule, Measured, Slo, View,
};
use servebench_core::{FailureKind, Stamp};
use std::collections::btree_map::{BTreeMap, Entry};

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
/// Per-request samples are kept at once; token streams are borrowed from the records until
/// [`finish`](Self::finish), since a stream can be far larger than all else and the peaks need to
/// know the whole run. The memory on top of the records is one number per output token at most.
#[derive(Clone, Debug, Default)]
pub struct Aggregate<'a> {
    options: Options,
    successes: Vec<Measured<'a>>,
    failures: BTreeMap<FailureKind, FailureTally>,
    span: Option<Span>,
    sums: Sums,
    samples: Samples,
    own: Met,
    upstream: Met,
}

/// Counts that add up.
#[derive(Clone, Debug, Default)]
struct Sums {
    requests: u64,
    reconnects: u64,
    input: u64,
    output: u64,
    upstream_output: u64,
    retokenized: Option<u64>,
    accepted: u64,
    cache: CacheReport,
}

impl Sums {
    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.reconnects += other.reconnects;
        self.input += other.input;
        self.output += other.output;
        self.upstream_output += other.upstream_output;
        self.accepted += other.accepted;
        self.cache.merge(other.cache);
        if let Some(tokens) = other.retokenized {
            *self.retokenized.get_or_insert(0) += tokens;
        }
    }
}

/// One number per request, in seconds (but for the last).
#[derive(Clone, Debug, Default)]
struct Samples {
    e2e: Vec<f64>,
    upstream_e2e: Vec<f64>,
    ttft: Vec<f64>,
    tpot: Vec<f64>,
    upstream_tpot: Vec<f64>,
    ttft_intended: Vec<f64>,
    e2e_intended: Vec<f64>,
    connect: Vec<f64>,
    lateness: Vec<f64>,
    turnaround: Vec<f64>,
    queue_wait: Vec<f64>,
    verify_steps: Vec<f64>,
}

impl Samples {
    fn merge(&mut self, other: &Self) {
        self.e2e.extend(&other.e2e);
        self.upstream_e2e.extend(&other.upstream_e2e);
        self.ttft.extend(&other.ttft);
        self.tpot.extend(&other.tpot);
        self.upstream_tpot.extend(&other.upstream_tpot);
        self.ttft_intended.extend(&other.ttft_intended);
        self.e2e_intended.extend(&other.e2e_intended);
        self.connect.extend(&other.connect);
        self.lateness.extend(&other.lateness);
        self.turnaround.extend(&other.turnaround);
        self.queue_wait.extend(&other.queue_wait);
        self.verify_steps.extend(&other.verify_steps);
    }
}

/// The time a run took up.
#[derive(Clone, Copy, Debug)]
struct Span {
    first_dispatch: Stamp,
    last_dispatch: Stamp,
    end: Stamp,
}

impl Span {
    fn of(request: &Measured<'_>) -> Self {
        let record = request.record;
        let known = [record.reply.last_line, record.reply.last_token(), record.reply.headers];
        let end = known.into_iter().flatten().fold(record.dispatched, Stamp::max);
        Self { first_dispatch: record.dispatched, last_dispatch: record.dispatched, end }
    }

    fn join(self, other: Self) -> Self {
        Self {
            first_dispatch: self.first_dispatch.min(other.first_dispatch),
            last_dispatch: self.last_dispatch.max(other.last_dispatch),
            end: self.end.max(other.end),
        }
    }
}

impl<'a> Aggregate<'a> {
    /// An empty fold. Folds that are to be merged need the same options.
    pub fn new(options: &Options) -> Self {
        Self { options: options.clone(), ..Self::default() }
    }

    /// Takes one record in.
    pub fn add(&mut self, request: Measured<'a>) {
        let record = request.record;
        self.sums.requests += 1;
        self.sums.reconnects += u64::from(record.reply.reconnects);
        self.samples.connect.extend(record.reply.connect.map(|time| time.as_secs_f64()));
        self.samples.lateness.extend(record.lateness.map(|time| time.as_secs_f64()));
        self.samples.turnaround.extend(record.turnaround.map(|time| time.as_secs_f64()));
        self.samples.queue_wait.push(request.queue_wait());
        let span = Span::of(&request);
        self.span = Some(self.span.map_or(span, |so_far| so_far.join(span)));
        match &record.reply.failure {
            None => self.add_success(request),
            Some(failure) => {
                let tally = FailureTally {
                    count: 1,
                    first_id: record.id,
                    first_detail: failure.detail.to_string(),
                };
                self.add_failure(failure.kind, tally);
            }
        }
    }

    fn add_success(&mut self, request: Measured<'a>) {
        let (record, sums) = (request.record, &mut self.sums);
        let output = request.output_count().tokens;
        sums.input += u64::from(record.prompt_len);
        sums.output += output;
        sums.upstream_output += request.upstream_output_tokens();
        sums.cache.add(&request);
        if let Some(tokens) = request.retokenized {
            *sums.retokenized.get_or_insert(0) += tokens;
        }
        if let Some(accept_length) = record.reply.accept_length.filter(|length| *length > 0.0) {
            sums.accepted += output;
            self.samples.verify_steps.push(output as f64 / accept_length);
        }

        let own =
            Observed { ttft: request.ttft(), tpot: request.tpot(), latency: request.latency() };
        let upstream = Observed {
            ttft: own.ttft,
            tpot: request.upstream_tpot(),
            latency: request.stream_latency(),
        };
        self.own.add(&self.options.slos, own);
        self.upstream.add(&self.options.slos, upstream);
        let samples = &mut self.samples;
        samples.ttft.extend(own.ttft);
        samples.tpot.extend(own.tpot);
        samples.e2e.extend(own.latency);
        samples.upstream_tpot.extend(upstream.tpot);
        samples.upstream_e2e.extend(upstream.latency);
        samples.ttft_intended.extend(request.ttft_from_intended());
        samples.e2e_intended.extend(request.latency_from_intended());
        self.successes.push(request);
    }

    fn add_failure(&mut self, kind: FailureKind, tally: FailureTally) {
        match self.failures.entry(kind) {
            Entry::Vacant(entry) => {
                entry.insert(tally);
            }
            Entry::Occupied(mut entry) => {
                let so_far = entry.get_mut();
                let count = so_far.count + tally.count;
                if tally.first_id < so_far.first_id {
                    *so_far = tally;
                }
                so_far.count = count;
            }
        }
    }

    /// Takes in what another fold took in.
    pub fn merge(&mut self, other: Self) {
        self.successes.extend(other.successes);
        for (kind, tally) in other.failures {
            self.add_failure(kind, tally);
        }
        if let Some(span) = other.span {
            self.span = Some(self.span.map_or(span, |so_far| so_far.join(span)));
        }
        self.sums.merge(other.sums);
        self.samples.merge(&other.samples);
        self.own.merge(&other.own);
        self.upstream.merge(&other.upstream);
    }

    /// The numbers of all that was taken in.
    pub fn finish(mut self) -> Aggregates {
        let completed = self.successes.len() as u64;
        let measured = self.span.map(|span| span.end.secs_since(span.first_dispatch));
        let duration = self.options.duration.or(measured);
        let own = self.view(completed, duration, self.sums.output, &self.own);
        let upstream_duration = self.options.upstream_duration.or(duration);
        let upstream =
            self.view(completed, upstream_duration, self.sums.upstream_output, &self.upstream);
        let (own, upstream) = (self.with_own_peaks(own), self.with_upstream_peaks(upstream));
        let retokenized = self.sums.retokenized;
        let per_second = |tokens: u64| quotient(tokens as f64, duration).filter(|_| completed > 0);
        let (itl, token_itl) = self.itl_families();
        let samples = &mut self.samples;
        Aggregates {
            completed,
            failed: self.sums.requests - completed,
            failures: self.failures,
            reconnects: self.sums.reconnects,
            total_input_tokens: self.sums.input,
            total_input_tokens_server: self.sums.cache.prompt_tokens,
            total_output_tokens_retokenized: retokenized,
            output_throughput_retokenized: retokenized.and_then(per_second),
            total_throughput_retokenized: retokenized
                .and_then(|tokens| per_second(self.sums.input + tokens)),
            own: View {
                e2e: Distribution::of(&mut samples.e2e),
                tpot: Distribution::of(&mut samples.tpot),
                ..own
            }
            .with_concurrency(),
            upstream: View {
                e2e: Distribution::of(&mut samples.upstream_e2e),
                tpot: Distribution::of(&mut samples.upstream_tpot),
                ..upstream
            }
            .with_concurrency(),
            ttft: Distribution::of(&mut samples.ttft),
            itl,
            token_itl,
            ttft_intended: Distribution::of(&mut samples.ttft_intended),
            e2e_intended: Distribution::of(&mut samples.e2e_intended),
            connect: Distribution::of(&mut samples.connect),
            lateness: Distribution::of(&mut samples.lateness),
            turnaround: Distribution::of(&mut samples.turnaround),
            queue_wait: Distribution::of(&mut samples.queue_wait),
            achieved_request_rate: self.span.and_then(|span| {
                let gaps = self.sums.requests.checked_sub(1)?;
                let time = span.last_dispatch.secs_since(span.first_dispatch);
                quotient(gaps as f64, Some(time))
            }),
            accept_length: {
                samples.verify_steps.sort_unstable_by(f64::total_cmp);
                let steps = pairwise_sum(&samples.verify_steps, &|steps| steps);
                quotient(self.sums.accepted as f64, Some(steps))
            },
            cache: self.sums.cache,
        }
    }

    fn view(&self, completed: u64, duration: Option<f64>, output: u64, met: &Met) -> View {
        let per_second = |amount| quotient(amount, duration).filter(|_| completed > 0);
        let requests = (completed > 0).then_some(self.sums.requests);
        View {
            duration,
            total_output_tokens: output,
            request_throughput: per_second(completed as f64),
            input_throughput: per_second(self.sums.input as f64),
            output_throughput: per_second(output as f64),
            total_throughput: per_second((self.sums.input + output) as f64),
            goodput: met.finish(&self.options.slos, requests, per_second),
            ..View::default()
        }
    }

    fn with_own_peaks(&self, view: View) -> View {
        let intervals: Vec<_> = self
            .successes
            .iter()
            .filter_map(|request| Some((request.record.dispatched, request.end()?)))
            .collect();
        let mut tokens: Vec<Stamp> = self
            .successes
            .iter()
            .flat_map(Measured::token_stamps)
            .flat_map(|(at, tokens)| std::iter::repeat_n(at, tokens as usize))
            .collect();
        View {
            max_output_tokens_per_s: peak_per_second(&mut tokens),
            max_concurrent_requests: peak_overlap(&intervals),
            ..view
        }
    }

    fn with_upstream_peaks(&self, view: View) -> View {
        let start = self.successes.iter().map(|request| request.record.dispatched).min();
        let Some(origin) = start else { return view };
        let mut buckets = Buckets::default();
        for request in &self.successes {
            let start = request.record.dispatched.secs_since(origin);
            if let Some(latency) = request.stream_latency() {
                buckets.add_request(start, start + latency);
            }
            if let Some(ttft) = request.ttft() {
                let mut at = start + ttft;
                let further = request.itls(self.options.itl_rule).flat_map(Gap::samples);
                buckets.add_tokens(std::iter::once(at).chain(further.map(|gap| {
                    at += gap;
                    at
                })));
            }
        }
        View {
            max_output_tokens_per_s: buckets.peak_tokens(),
            max_concurrent_requests: buckets.peak_requests(),
            ..view
        }
    }

    /// The ITL family by the route's rule, and the one per token.
    fn itl_families(&self) -> (Option<Distribution>, Option<Distribution>) {
        let rule = self.options.itl_rule;
        let samples = self.successes.iter().flat_map(|request| request.itl_samples(rule));
        let itl = Distribution::of(&mut samples.flat_map(Gap::samples).collect::<Vec<_>>());
        // With one token per chunk, the usual case, both are the same: no second sort.
        let same = self.successes.iter().all(|request| {
            request.token_itls().is_some_and(|gaps| gaps.eq(request.itl_samples(rule)))
        });
        if same {
            return (itl, itl);
        }
        let samples = self.successes.iter().filter_map(Measured::token_itls).flatten();
        (itl, Distribution::of(&mut samples.flat_map(Gap::samples).collect::<Vec<_>>()))
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
    let mut fold = Aggregate::new(options);
    for request in requests {
        fold.add(request);
    }
    fold.finish()
}
