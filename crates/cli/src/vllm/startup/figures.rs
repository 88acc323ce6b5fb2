//! What starts come to: the console's blocks and the keys of the result.

use super::Start;
use serde_json::{Map, Value, json};
use servebench_metrics::percentile;
use std::fmt::Write as _;

/// Which percentiles are shown.
const PERCENTILES: [u32; 6] = [10, 25, 50, 75, 90, 99];

/// Starts with caches of one kind.
pub(super) struct Phase {
    /// Part of the keys: `cold` or `warm`.
    key: &'static str,
    figures: Vec<Figure>,
}

/// One thing that was timed in each start.
pub(super) struct Figure {
    /// Begin of its keys, as `cold_startup`.
    pub(super) key: String,
    name: &'static str,
    /// In seconds, one for each start.
    pub(super) values: Vec<f64>,
    pub(super) average: f64,
    percentiles: [(u32, Option<f64>); PERCENTILES.len()],
}

impl Figure {
    fn new(key: String, name: &'static str, values: Vec<f64>) -> Self {
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let average = values.iter().sum::<f64>() / values.len() as f64;
        let percentiles = PERCENTILES.map(|q| (q, percentile(&sorted, q.into())));
        Self { key, name, values, average, percentiles }
    }

    fn percentiles(&self) -> Value {
        self.percentiles
            .iter()
            .map(|(q, value)| (q.to_string(), json!(value)))
            .collect::<Map<_, _>>()
            .into()
    }

    /// What a result says of it beside the average.
    pub(super) fn further(&self) -> Map<String, Value> {
        let Self { key, values, .. } = self;
        Map::from_iter([
            (format!("{key}_times"), json!(values)),
            (format!("{key}_percentiles"), self.percentiles()),
        ])
    }
}

impl Phase {
    /// `None` without a start. Compilation is a figure if every start told its time, that of encoders if
    /// `encoders` is set.
    pub(super) fn of(key: &'static str, starts: &[Start], encoders: bool) -> Option<Self> {
        if starts.is_empty() {
            return None;
        }
        let told: Option<Vec<_>> = starts.iter().map(|start| start.compilation).collect();
        let mut figures = Vec::new();
        let mut add = |item: &str, name, values| {
            figures.push(Figure::new(format!("{key}_{item}"), name, values));
        };
        add("startup", "Startup time", starts.iter().map(|start| start.seconds).collect());
        if let Some(told) = told {
            add("compilation", "Compilation time", told.iter().map(|it| it.model).collect());
            if encoders {
                let values = told.iter().map(|it| it.encoder).collect();
                add("encoder_compilation", "Encoder compilation time", values);
            }
        }
        Some(Self { key, figures })
    }

    pub(super) fn figures(&self) -> &[Figure] {
        &self.figures
    }

    fn lines(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{} STARTUP:", self.key.to_uppercase());
        for Figure { name, average, .. } in &self.figures {
            let name = name.to_lowercase();
            let _ = writeln!(text, "Avg {name}: {average:.2} seconds");
        }
        for Figure { name, percentiles, .. } in &self.figures {
            let _ = writeln!(text, "{name} percentiles:");
            for (q, value) in percentiles {
                let _ = writeln!(text, "  {q}%: {:.2} seconds", value.unwrap_or(f64::NAN));
            }
        }
    }
}

/// The console's blocks.
pub(super) fn blocks(phases: &[Phase]) -> String {
    let rule = "=".repeat(60);
    let mut text = format!("\n{rule}\nSTARTUP TIME BENCHMARK RESULTS\n{rule}\n");
    for phase in phases {
        phase.lines(&mut text);
    }
    text + &rule
}

/// The keys of the result. What no start told is null.
pub(super) fn keys(phases: &[Phase]) -> Map<String, Value> {
    let mut keys = Map::new();
    for phase in phases {
        for figure in &phase.figures {
            keys.insert(format!("avg_{}_time", figure.key), json!(figure.average));
            keys.extend(figure.further());
        }
        if phase.figures.len() == 1 {
            let key = format!("{}_compilation", phase.key);
            for name in
                [format!("avg_{key}_time"), format!("{key}_times"), format!("{key}_percentiles")]
            {
                keys.insert(name, Value::Null);
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::super::log::Compilation;
    use super::*;

    fn start(seconds: f64, compilation: Option<(f64, f64)>) -> Start {
        let compilation = compilation.map(|(model, encoder)| Compilation { model, encoder });
        Start { seconds, compilation }
    }

    #[test]
    fn blocks_are_the_python_tools() {
        let cold = [start(10.0, Some((4.0, 0.0))), start(12.0, Some((5.0, 0.0)))];
        let warm = [start(6.0, Some((0.5, 0.0)))];
        let phases = [Phase::of("cold", &cold, false), Phase::of("warm", &warm, false)];
        let phases: Vec<Phase> = phases.into_iter().flatten().collect();
        let wanted = "
============================================================
STARTUP TIME BENCHMARK RESULTS
============================================================

COLD STARTUP:
Avg startup time: 11.00 seconds
Avg compilation time: 4.50 seconds
Startup time percentiles:
  10%: 10.20 seconds
  25%: 10.50 seconds
  50%: 11.00 seconds
  75%: 11.50 seconds
  90%: 11.80 seconds
  99%: 11.98 seconds
Compilation time percentiles:
  10%: 4.10 seconds
  25%: 4.25 seconds
  50%: 4.50 seconds
  75%: 4.75 seconds
  90%: 4.90 seconds
  99%: 4.99 seconds

WARM STARTUP:
Avg startup time: 6.00 seconds
Avg compilation time: 0.50 seconds
";
        assert!(blocks(&phases).starts_with(wanted), "{}", blocks(&phases));
        let keys = keys(&phases);
        let names: Vec<&str> = keys.keys().map(String::as_str).collect();
        let of = |key: &str| {
            [format!("avg_{key}_time"), format!("{key}_times"), format!("{key}_percentiles")]
        };
        let all = ["cold_startup", "cold_compilation", "warm_startup", "warm_compilation"]
            .map(of)
            .concat();
        assert_eq!(names, all);
        assert_eq!(keys["cold_startup_times"], json!([10.0, 12.0]));
        assert_eq!(keys["warm_startup_percentiles"]["99"], 6.0);
    }

    #[test]
    fn what_is_not_told_is_no_figure() {
        let silent = [start(1.0, None), start(2.0, Some((1.0, 1.0)))];
        let phase = Phase::of("cold", &silent, true).unwrap();
        assert_eq!(phase.figures().len(), 1);
        assert_eq!(keys(&[phase])["avg_cold_compilation_time"], Value::Null);
        assert!(Phase::of("warm", &[], false).is_none());
        let encoder = Phase::of("warm", &silent[1..], true).unwrap();
        assert_eq!(encoder.figures()[2].key, "warm_encoder_compilation");
    }
}
