//! Objectives, and how many requests met them.

use serde::Serialize;

/// What an objective limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SloMetric {
    /// Time to first token.
    Ttft,
    /// Time per output token after the first.
    Tpot,
    /// End-to-end latency.
    E2el,
}

impl SloMetric {
    /// The name on the command line and in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ttft => "ttft",
            Self::Tpot => "tpot",
            Self::E2el => "e2el",
        }
    }

    /// The metric of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ttft, Self::Tpot, Self::E2el].into_iter().find(|metric| metric.name() == name)
    }
}

/// An upper limit on one metric of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slo {
    /// What is limited.
    pub metric: SloMetric,
    /// The largest value that still meets the objective, in milliseconds.
    pub limit_ms: f64,
}

/// The metrics of one successful request, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observed {
    pub(crate) ttft: Option<f64>,
    pub(crate) tpot: Option<f64>,
    pub(crate) latency: Option<f64>,
}

impl Observed {
    /// A missing TPOT (one token, or one piece) meets every limit; a missing TTFT or latency none.
    fn meets(self, slo: Slo) -> bool {
        let seconds = match slo.metric {
            SloMetric::Ttft => self.ttft,
            SloMetric::Tpot => Some(self.tpot.unwrap_or(0.0)),
            SloMetric::E2el => self.latency,
        };
        // To whole nanoseconds, so that 0.29 s is not more than 290 ms.
        seconds.is_some_and(|seconds| (seconds * 1e9).round() / 1e6 <= slo.limit_ms)
    }
}

/// How many requests met the objectives: a part of the fold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Met {
    good: u64,
    by_objective: Vec<u64>,
}

impl Met {
    pub(crate) fn add(&mut self, slos: &[Slo], observed: Observed) {
        self.by_objective.resize(slos.len(), 0);
        let mut all = true;
        for (met, &slo) in self.by_objective.iter_mut().zip(slos) {
            let meets = observed.meets(slo);
            *met += u64::from(meets);
            all &= meets;
        }
        self.good += u64::from(all);
    }

    /// `requests` are all requests, failed ones too; `None` when there is nothing to report on.
    /// `per_second` divides by the run's duration.
    pub(crate) fn finish(
        &self,
        slos: &[Slo],
        requests: Option<u64>,
        per_second: impl Fn(f64) -> Option<f64>,
    ) -> Option<Goodput> {
        if slos.is_empty() {
            return None;
        }
        let request_goodput = per_second(self.good as f64);
        let share = |met: u64| requests.map(|requests| met as f64 / requests as f64);
        let by_objective = slos
            .iter()
            .enumerate()
            .map(|(i, &slo)| (slo, share(self.by_objective.get(i).copied().unwrap_or(0))))
            .collect();
        Some(Goodput {
            good: self.good,
            request_goodput,
            attainment: share(self.good),
            by_objective,
        })
    }
}

/// Requests that met every objective.
///
/// A one-token reply meets a TPOT limit. Failed requests count in the denominators.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Goodput {
    /// Requests that met every objective.
    pub good: u64,
    /// `good / duration`, per second.
    pub request_goodput: Option<f64>,
    /// `good / requests`, from 0 to 1.
    pub attainment: Option<f64>,
    /// Each objective in the order given, with its own share from 0 to 1.
    pub by_objective: Vec<(Slo, Option<f64>)>,
}
