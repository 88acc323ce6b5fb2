//! The latencies that can be asked for.

use crate::python_float;

/// A latency that `--percentile-metrics` can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Time to first token.
    Ttft,
    /// Time per output token after the first.
    Tpot,
    /// Inter-token latency.
    Itl,
    /// End-to-end latency.
    E2el,
    /// Time in the client's queue.
    ClientQueueTime,
    /// The sum of the last two.
    E2elIncludingClientQueue,
}

impl Metric {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 6] = [
        Self::Ttft,
        Self::Tpot,
        Self::Itl,
        Self::E2el,
        Self::ClientQueueTime,
        Self::E2elIncludingClientQueue,
    ];

    /// The name on the command line and in keys.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Tpot => "tpot",
            Self::Itl => "itl",
            Self::E2el => "e2el",
            Self::ClientQueueTime => "client_queue_time",
            Self::E2elIncludingClientQueue => "e2el_including_client_queue",
        }
    }

    /// The metric of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.name() == name)
    }

    /// The title of its section, and its name in the rows.
    pub(crate) const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Ttft => ("Time to First Token", "TTFT"),
            Self::Tpot => ("Time per Output Token (excl. 1st token)", "TPOT"),
            Self::Itl => ("Inter-token Latency", "ITL"),
            Self::E2el => ("End-to-end Latency", "E2EL"),
            Self::ClientQueueTime => ("Client-side Queueing", "Client Queue Time"),
            Self::E2elIncludingClientQueue => {
                ("Queue-inclusive End-to-end Latency", "E2EL incl. Client Queue")
            }
        }
    }
}

/// A percentile as labels and keys write it: `99`, `99.9`.
pub fn percentile_label(q: f64) -> String {
    if q.fract() == 0.0 && q.abs() < 1e15 { format!("{q:.0}") } else { python_float(q) }
}
