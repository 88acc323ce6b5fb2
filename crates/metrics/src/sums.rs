//! What adds up over requests, in any order.

use crate::goodput::{Met, Observed};
use crate::{CacheReport, FailureTally, Measured, Slo};
use servebench_core::{FailureKind, Stamp};
use std::collections::btree_map::{BTreeMap, Entry};

/// Counts, and the extremes of time.
#[derive(Debug, Default)]
pub(crate) struct Sums {
    pub(crate) requests: u64,
    pub(crate) reconnects: u64,
    pub(crate) retries: u64,
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) upstream_output: u64,
    pub(crate) retokenized: Option<u64>,
    /// Output tokens of the replies that told their accept length.
    pub(crate) accepted: u64,
    pub(crate) cache: CacheReport,
    pub(crate) failures: BTreeMap<FailureKind, FailureTally>,
    pub(crate) span: Option<Span>,
    pub(crate) met: Met,
    pub(crate) upstream_met: Met,
}

/// The time a run took up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) first_dispatch: Stamp,
    pub(crate) last_dispatch: Stamp,
    pub(crate) end: Stamp,
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

impl Sums {
    /// Takes one request in.
    pub(crate) fn add(&mut self, request: &Measured<'_>, slos: &[Slo]) {
        let record = request.record;
        self.requests += 1;
        self.reconnects += u64::from(record.reply.rare().reconnects);
        self.retries += u64::from(record.reply.rare().retries);
        let span = Span::of(request);
        self.span = Some(self.span.map_or(span, |so_far| so_far.join(span)));
        match &record.reply.failure {
            None => self.add_success(request, slos),
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

    fn add_success(&mut self, request: &Measured<'_>, slos: &[Slo]) {
        let output = request.output_count().tokens;
        self.input += u64::from(request.record.prompt_len);
        self.output += output;
        self.upstream_output += request.upstream_output_tokens();
        self.cache.add(request);
        if let Some(tokens) = request.retokenized {
            *self.retokenized.get_or_insert(0) += u64::from(tokens);
        }
        if request.verify_steps().is_some() {
            self.accepted += output;
        }
        let own =
            Observed { ttft: request.ttft(), tpot: request.tpot(), latency: request.latency() };
        let upstream = Observed {
            ttft: own.ttft,
            tpot: request.upstream_tpot(),
            latency: request.stream_latency(),
        };
        self.met.add(slos, own);
        self.upstream_met.add(slos, upstream);
    }

    fn add_failure(&mut self, kind: FailureKind, tally: FailureTally) {
        match self.failures.entry(kind) {
            Entry::Vacant(entry) => {
                entry.insert(tally);
            }
            Entry::Occupied(mut entry) => {
                let so_far = entry.get_mut();
                let count = so_far.count + 1;
                if tally.first_id < so_far.first_id {
                    *so_far = tally;
                }
                so_far.count = count;
            }
        }
    }
}
