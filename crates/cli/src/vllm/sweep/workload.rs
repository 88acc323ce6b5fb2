//! Which loads lie between one request at a time and all at once.

use serde_json::{Map, Value};

/// What is varied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum WorkloadVariable {
    /// Requests per second
    #[default]
    RequestRate,
    /// Requests at the same time
    MaxConcurrency,
}

impl WorkloadVariable {
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::RequestRate => "request_rate",
            Self::MaxConcurrency => "max_concurrency",
        }
    }

    /// The load that these runs amounted to, on average: requests per second, or, by Little's law,
    /// requests at the same time. `None` when a run lacks the numbers.
    pub(super) fn estimate(self, runs: &[Map<String, Value>]) -> Option<f64> {
        let estimate = |run: &Map<String, Value>| {
            let number = |key: &str| run.get(key).and_then(Value::as_f64);
            let throughput = number("request_throughput")?;
            match self {
                Self::RequestRate => Some(throughput),
                Self::MaxConcurrency => Some(throughput * number("mean_e2el_ms")? / 1000.0),
            }
        };
        let estimates = runs.iter().map(estimate).collect::<Option<Vec<f64>>>()?;
        let count = u32::try_from(estimates.len()).ok().filter(|count| *count > 0)?;
        Some(estimates.iter().sum::<f64>() / f64::from(count))
    }
}

/// The ends of the ladder as whole numbers: the serial load rounded up, that of the batch down.
pub(super) fn ends(serial: f64, batch: f64) -> (i64, i64) {
    (whole(serial.ceil()), whole(batch.floor()))
}

/// Evenly spaced values between the ends without these, rounded to even, each once, rising.
pub(super) fn between(serial: i64, batch: i64, iterations: u32) -> Vec<i64> {
    if iterations < 3 {
        return Vec::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "loads are small")]
    let (serial, batch) = (serial as f64, batch as f64);
    let step = (batch - serial) / f64::from(iterations - 1);
    // Two roundings, as NumPy's linspace has.
    #[expect(clippy::suboptimal_flops, reason = "a fused operation would round once")]
    let value = |place: u32| whole((serial + f64::from(place) * step).round_ties_even());
    let mut values: Vec<i64> = (1..iterations - 1).map(value).collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[expect(clippy::cast_possible_truncation, reason = "saturates; loads are small")]
const fn whole(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_ladder_of_the_specification() {
        assert_eq!(ends(1.0, 7.4), (1, 7));
        assert_eq!(between(1, 7, 5), [2, 4, 6]);
        assert_eq!(between(1, 2, 10), [1, 2]);
        assert_eq!(between(1, 9, 2), [0_i64; 0]);
    }

    #[test]
    fn estimates_are_means() {
        let run = |throughput: f64, e2el: f64| match json!({"request_throughput": throughput, "mean_e2el_ms": e2el})
        {
            Value::Object(run) => run,
            _ => Map::new(),
        };
        let runs = [run(2.0, 500.0), run(4.0, 1000.0)];
        assert_eq!(WorkloadVariable::RequestRate.estimate(&runs), Some(3.0));
        assert_eq!(WorkloadVariable::MaxConcurrency.estimate(&runs), Some(2.5));
        assert_eq!(WorkloadVariable::RequestRate.estimate(&[]), None);
        assert_eq!(WorkloadVariable::RequestRate.estimate(&[Map::new()]), None);
    }

    proptest! {
        #[test]
        fn values_rise_and_stay_between_the_ends(one in 0_i64..5000, two in 0_i64..5000, iterations in 0_u32..40) {
            let values = between(one, two, iterations);
            prop_assert!(values.is_sorted_by(|a, b| a < b));
            prop_assert!(values.iter().all(|value| (one.min(two)..=one.max(two)).contains(value)));
        }
    }
}
