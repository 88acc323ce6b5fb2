//! The loads of one combination: one request at a time, all at once, then those between.

use super::combination::Combination;
use super::experiment::Experiment;
use super::files::Run;
use super::live::Running;
use super::params::Overrides;
use super::words::python_text;
use super::workload::{WorkloadVariable, between, ends};
use crate::Failure;

/// Prompts of the client when nothing says how many.
const NUM_PROMPTS: i64 = 1000;

/// Settings of server and client whose load is varied.
pub(super) struct Ladder<'a> {
    experiment: &'a Experiment<'a>,
    serve: &'a Overrides,
    bench: &'a Overrides,
    variable: WorkloadVariable,
    /// How many loads, the ends among them.
    count: u32,
    /// Prompts of a run: the most that can be under way at once.
    size: i64,
}

impl<'a> Ladder<'a> {
    /// Reads from the client's settings how many prompts it sends.
    pub(super) fn new(
        experiment: &'a Experiment<'a>,
        serve: &'a Overrides,
        bench: &'a Overrides,
        (variable, count): (WorkloadVariable, u32),
    ) -> Result<Self, Failure> {
        let size = dataset_size(&experiment.setup.bench, bench)?;
        Ok(Self { experiment, serve, bench, variable, count, size })
    }

    fn at(&self, bench: &Overrides, value: i64) -> Combination<'a> {
        let key = self.variable.key();
        Combination {
            experiment: self.experiment,
            serve: self.serve,
            bench: bench.with(key, value),
            folder: self.experiment.folder(self.serve, bench, Some(&format!("{key}={value}"))),
        }
    }

    /// One request at a time, and all at once.
    fn ends(&self) -> [Combination<'a>; 2] {
        [1, self.size].map(|value| self.at(&self.bench.with("max_concurrency", value), value))
    }

    /// The loads that these runs amounted to, as whole numbers.
    fn bounds(&self, serial: &[Run], batch: &[Run]) -> Option<(i64, i64)> {
        let (low, high) = self.variable.estimate(serial).zip(self.variable.estimate(batch))?;
        Some(ends(low, high))
    }

    fn between(&self, (low, high): (i64, i64)) -> Vec<i64> {
        between(low, high, self.count)
    }

    /// Whether every run was made already.
    pub(super) fn is_finished(&self) -> bool {
        let [serial, batch] = self.ends().map(|end| end.finished());
        let bounds = serial.zip(batch).and_then(|(serial, batch)| self.bounds(&serial, &batch));
        let done = |value: i64| self.at(self.bench, value).finished().is_some();
        bounds.is_some_and(|bounds| self.between(bounds).into_iter().all(done))
    }

    /// Makes every run that was not made yet.
    pub(super) fn runs(&self, server: Option<&Running<'_>>) -> Result<Vec<Run>, Failure> {
        let (experiment, key) = (self.experiment, self.variable.key());
        let none = |text: String| if text.is_empty() { "(None)".to_owned() } else { text };
        experiment.print(format_args!(
            "[WL START]\nServe parameters: {}\nBench parameters: {}\n\
             Number of workload iterations: {}\nDataset size: {}",
            none(self.serve.text(", ")),
            none(self.bench.text(", ")),
            self.count,
            self.size
        ))?;
        let [serial, batch] = self.ends();
        let mut runs = serial.runs(server)?;
        let batch = batch.runs(server)?;
        let Some((low, high)) = self.bounds(&runs, &batch) else {
            experiment.print(if experiment.args.dry_run {
                "Omitting intermediate Workload iterations.\n[WL END]"
            } else {
                "Unable to establish both ends of the workload; nothing between is run.\n[WL END]"
            })?;
            runs.extend(batch);
            return Ok(runs);
        };
        let text = format!("Serial inference: {key}={low}\nBatch inference: {key}={high}");
        experiment.print(text)?;
        for value in self.between((low, high)) {
            experiment.print(format_args!("Exploring: {key}={value}"))?;
            runs.extend(self.at(self.bench, value).runs(server)?);
        }
        runs.extend(batch);
        experiment.print("[WL END]")?;
        Ok(runs)
    }
}

/// Prompts of a run, by its overrides or the client's command.
fn dataset_size(command: &[String], bench: &Overrides) -> Result<i64, Failure> {
    let mut words = command.iter().enumerate();
    let given = words.find_map(|(place, word)| match word.split_once('=') {
        Some(("--num-prompts", value)) => Some(value.to_owned()),
        None if word == "--num-prompts" => command.get(place + 1).cloned(),
        _ => None,
    });
    let value = match bench.0.get("num_prompts").or_else(|| bench.0.get("num-prompts")) {
        Some(value) => Some(python_text(value)),
        None => given,
    };
    let Some(value) = value else { return Ok(NUM_PROMPTS) };
    let wrong = || Failure::usage(format!("num_prompts is `{value}`, not a whole number above 0"));
    value.parse().ok().filter(|size| *size > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_number_of_prompts_is_the_clients() {
        let size = |line: &str, set: serde_json::Value| {
            let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
            dataset_size(&command, &Overrides(set.as_object().cloned().unwrap_or_default()))
        };
        assert_eq!(size("c --num-prompts 7", json!({})).ok(), Some(7));
        assert_eq!(size("c --num-prompts=8", json!({})).ok(), Some(8));
        assert_eq!(size("c --num-prompts 7", json!({"num_prompts": 9})).ok(), Some(9));
        assert_eq!(size("c", json!({"num-prompts": "10"})).ok(), Some(10));
        assert_eq!(size("c", json!({})).ok(), Some(1000));
        for wrong in [json!("x"), json!(0), json!(-1), json!(1.5)] {
            assert!(size("c", json!({ "num_prompts": wrong })).is_err());
        }
    }
}
