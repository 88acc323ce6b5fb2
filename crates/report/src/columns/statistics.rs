//! Families of samples and the statistics that are written of each.

use super::{Presence, Source, Table, describe};
use crate::Report;
use servebench_metrics::Distribution;

/// A part of a key, what it means, and how to get it.
pub(super) struct Named<F: 'static> {
    key: &'static str,
    doc: &'static str,
    of: F,
}

pub(super) type Family = Named<fn(&Report<'_>) -> Option<Distribution>>;
pub(super) type Statistic = Named<fn(&Distribution) -> f64>;

const MEAN: Statistic = Named { key: "mean", doc: "Mean", of: |d| d.mean };
const MEDIAN: Statistic = Named { key: "median", doc: "Median", of: |d| d.median };
const STD: Statistic =
    Named { key: "std", doc: "Standard deviation (of the population)", of: |d| d.std };
const P50: Statistic = Named { key: "p50", doc: "50th percentile", of: |d| d.median };
const P90: Statistic = Named { key: "p90", doc: "90th percentile", of: |d| d.p90 };
const P95: Statistic = Named { key: "p95", doc: "95th percentile", of: |d| d.p95 };
const P99: Statistic = Named { key: "p99", doc: "99th percentile", of: |d| d.p99 };
const P99_9: Statistic = Named { key: "p99.9", doc: "99.9th percentile", of: |d| d.p99_9 };
const MAX: Statistic = Named { key: "max", doc: "Maximum", of: |d| d.max };

/// What the Python tool writes of each family.
pub(super) const UPSTREAM: &[Statistic] = &[MEAN, MEDIAN, STD, P90, P95, P99];
/// What we write of the same families besides.
pub(super) const FURTHER: &[Statistic] = &[P50, P99_9, MAX];
/// All of them.
pub(super) const ALL: &[Statistic] = &[MEAN, MEDIAN, STD, P90, P95, P99, P50, P99_9, MAX];
/// For latencies from the intended time, and for bounds.
pub(super) const INTENDED: &[Statistic] = &[MEAN, P50, P99];
/// For the client's own delays.
pub(super) const LATE: &[Statistic] = &[P50, P99, MAX];
/// For means over the reads of a request.
pub(super) const READ_LAGS: &[Statistic] = &[P50, P99];
/// For waits and connects.
pub(super) const WAIT: &[Statistic] = &[MEAN, P50, P99, MAX];

/// The four families of the Python tool, in its order.
pub(super) const FAMILIES: [Family; 4] = [
    Named {
        key: "e2e_latency",
        doc: "end-to-end latency, from dispatch to the last token",
        of: |r| r.aggregates.own.e2e,
    },
    Named { key: "ttft", doc: "time to first token, from dispatch", of: |r| r.aggregates.ttft },
    Named {
        key: "tpot",
        doc: "time per output token after the first: (latency − TTFT) / (tokens − 1)",
        of: |r| r.aggregates.own.tpot,
    },
    Named {
        key: "itl",
        doc: "inter-token latency by the route's rule: native routes spread the gap before a \
              chunk over its tokens, OpenAI routes take one gap per chunk",
        of: |r| r.aggregates.itl,
    },
];

pub(super) const TOKEN_ITL: Family = Named {
    key: "token_itl",
    doc: "inter-token latency per token, over the requests whose counts allow it: the gap before \
          a chunk divided by its tokens",
    of: |r| r.aggregates.token_itl,
};

pub(super) const FROM_INTENDED: [Family; 2] = [
    Named {
        key: "ttft_intended",
        doc: "time to first token, from the time the schedule intended",
        of: |r| r.aggregates.ttft_intended,
    },
    Named {
        key: "e2e_intended",
        doc: "end-to-end latency, from the time the schedule intended",
        of: |r| r.aggregates.e2e_intended,
    },
];

pub(super) const LATENESS: Family = Named {
    key: "lateness",
    doc: "delay of the client's own timer, over all requests that had a free slot in time",
    of: |r| r.aggregates.lateness,
};

pub(super) const TURNAROUND: Family = Named {
    key: "turnaround",
    doc: "from the last byte of a reply to the first byte written of the next request in its slot, \
          over the requests of a closed loop",
    of: |r| r.aggregates.turnaround,
};

pub(super) const QUEUE_WAIT: Family = Named {
    key: "queue_wait",
    doc: "wait in the client, from the intended time to dispatch, over all requests",
    of: |r| r.aggregates.queue_wait,
};

pub(super) const CONNECT: Family = Named {
    key: "connect",
    doc: "time to connect, over the requests that had to connect inside their latency",
    of: |r| r.aggregates.connect,
};

pub(super) const TLS: Family = Named {
    key: "tls",
    doc: "part of the connects that the TLS handshake took",
    of: |r| r.aggregates.tls,
};

pub(super) const READ_LAG: Family = Named {
    key: "read_lag",
    doc: "time that received bytes waited for the client, each request's mean over its reads",
    of: |r| Some(r.aggregates.reception.as_ref()?.read_lag),
};

/// What TTFT, ITL and E2E latency may truly be, at least and at most.
pub(super) const BOUNDED: [(Family, Family); 3] = [
    (
        Named {
            key: "ttft",
            doc: "time to first token, if every token came as early as its bounds allow",
            of: |r| Some(r.aggregates.reception.as_ref()?.ttft?.low),
        },
        Named {
            key: "ttft",
            doc: "time to first token, if every token came as late as its bounds allow",
            of: |r| Some(r.aggregates.reception.as_ref()?.ttft?.high),
        },
    ),
    (
        Named {
            key: "itl",
            doc: "inter-token latency, if every gap was as short as its bounds allow",
            of: |r| Some(r.aggregates.reception.as_ref()?.itl?.low),
        },
        Named {
            key: "itl",
            doc: "inter-token latency, if every gap was as long as its bounds allow",
            of: |r| Some(r.aggregates.reception.as_ref()?.itl?.high),
        },
    ),
    (
        Named {
            key: "e2e",
            doc: "end-to-end latency, if every last token came as early as its bounds allow",
            of: |r| Some(r.aggregates.reception.as_ref()?.e2e?.low),
        },
        Named {
            key: "e2e",
            doc: "end-to-end latency, if every last token came as late as its bounds allow",
            of: |r| Some(r.aggregates.reception.as_ref()?.e2e?.high),
        },
    ),
];

/// The families the Python tool computes otherwise.
pub(super) const TWINS: [Family; 2] = [
    Named {
        key: "e2e_latency",
        doc: "end-to-end latency as the Python tool takes it, up to the last `data:` line",
        of: |r| r.aggregates.upstream.e2e,
    },
    Named {
        key: "tpot",
        doc: "time per output token as the Python tool takes it, with the latency up to the last \
              `data:` line",
        of: |r| r.aggregates.upstream.tpot,
    },
];

impl Table {
    /// Keys like `mean_ttft_ms`.
    pub(super) fn family(&mut self, prefix: &str, family: &Family, statistics: &[Statistic]) {
        for statistic in statistics {
            self.statistic(
                format!("{prefix}{}_{}_ms", statistic.key, family.key),
                family,
                statistic,
            );
        }
    }

    /// Keys like `p99_itl_low_ms`.
    pub(super) fn bound(&mut self, family: &Family, end: &str, statistics: &[Statistic]) {
        for statistic in statistics {
            let key = format!("{}_{}_{end}_ms", statistic.key, family.key);
            self.statistic(key, family, statistic);
        }
    }

    /// Keys like `lateness_p99_ms`.
    pub(super) fn delay(&mut self, family: &Family, statistics: &[Statistic]) {
        for statistic in statistics {
            self.statistic(format!("{}_{}_ms", family.key, statistic.key), family, statistic);
        }
    }

    fn statistic(&mut self, key: String, family: &Family, statistic: &Statistic) {
        let source = Source::Statistic(family.of, statistic.of);
        let doc = format!("{} of the {}.", statistic.doc, family.doc);
        self.add(key, describe(source.types(), "ms", doc, Presence::Always), source);
    }
}
