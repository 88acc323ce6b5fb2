//! One set of settings of server and client: its warm-up, its runs, its summary.

use super::experiment::Experiment;
use super::files::{Run, read, write_failure, write_json};
use super::live::Running;
use super::params::Overrides;
use super::words::{list_repr, python_repr};
use crate::exit::OrCode;
use crate::{Code, Failure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Settings of server and client, and the folder of their results.
pub(super) struct Combination<'a> {
    pub(super) experiment: &'a Experiment<'a>,
    pub(super) serve: &'a Overrides,
    pub(super) bench: Overrides,
    pub(super) folder: PathBuf,
}

impl Combination<'_> {
    fn file(&self, number: u32) -> PathBuf {
        self.folder.join(format!("run={number}.json"))
    }

    /// Its runs, if all of them were made already.
    pub(super) fn finished(&self) -> Option<Vec<Run>> {
        let read =
            |number| read(&self.file(number), self.serve, &self.bench, i64::from(number)).ok();
        (0..self.experiment.args.num_runs).map(read).collect()
    }

    /// Makes every run that was not made yet, and the summary. Without a server none may be missing.
    pub(super) fn runs(&self, server: Option<&Running<'_>>) -> Result<Vec<Run>, Failure> {
        let args = self.experiment.args;
        let file = self.folder.join("warmup.json");
        if args.warmup_num_prompts > 0 && (file.exists() || self.finished().is_none()) {
            let warmup = self.bench.with("num_prompts", args.warmup_num_prompts);
            self.tolerant(server, &warmup, -1, &file)?;
        }
        let mut runs = Vec::new();
        for number in 0..args.num_runs {
            runs.extend(self.tolerant(server, &self.bench, number.into(), &self.file(number))?);
        }
        if args.dry_run {
            return Ok(Vec::new());
        }
        if runs.is_empty() {
            let text = "[NO SUCCESSFUL MEASURED RUNS] leaving combination retryable";
            self.experiment.print(text)?;
        } else {
            write_json(&self.folder.join("summary.json"), &runs)?;
        }
        Ok(runs)
    }

    /// One run, whose failure is written down where the sweep is to go on.
    fn tolerant(
        &self,
        server: Option<&Running<'_>>,
        bench: &Overrides,
        number: i64,
        file: &Path,
    ) -> Result<Option<Run>, Failure> {
        let experiment = self.experiment;
        let failure = match self.one(server, bench, number, file) {
            Err(failure) if experiment.goes_on_after(&failure) => failure,
            done => return done,
        };
        let written = file.with_extension("failure.json");
        write_failure(&written, &failure, self.serve, Some((number, bench)))?;
        experiment.print(format_args!(
            "[FAILED BENCHMARK] run={number}: {:#}\nFailure details: {}",
            failure.error,
            written.display()
        ))?;
        if let Some(Err(failure)) = server.map(Running::after) {
            experiment.io.say(format_args!("warning: {:#}", failure.error));
        }
        Ok(None)
    }

    fn one(
        &self,
        server: Option<&Running<'_>>,
        bench: &Overrides,
        number: i64,
        file: &Path,
    ) -> Result<Option<Run>, Failure> {
        let experiment = self.experiment;
        // The client writes elsewhere: what is at `file` is complete.
        let folder = self.folder.join("unfinished");
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = bench.apply(&experiment.setup.bench);
        let last = ["--percentile-metrics", "ttft,tpot,itl,e2el", "--save-result", "--result-dir"];
        command.extend(last.map(str::to_owned));
        command.push(folder.display().to_string());
        command.extend(["--result-filename".to_owned(), name.clone()]);
        experiment.print(format_args!(
            "[BEGIN BENCHMARK]\nBenchmark overrides: {}\nRun Number: {number}\n\
             Benchmark command: {}\nOutput file: {}",
            python_repr(&Value::Object(bench.0.clone())),
            list_repr(&command),
            file.display()
        ))?;
        if file.exists() {
            experiment.print("Found existing results.\n[SKIPPED BENCHMARK]")?;
            return read(file, self.serve, bench, number).map(Some);
        }
        let Some(server) = server else {
            if experiment.args.dry_run {
                experiment.print("[END BENCHMARK]")?;
                return Ok(None);
            }
            let error = anyhow::anyhow!("there is no result at {}", file.display());
            return Err(Failure::new(Code::Data, error));
        };
        if folder.exists() {
            fs::remove_dir_all(&folder).or_code(Code::Output)?;
        }
        fs::create_dir_all(&folder).or_code(Code::Output)?;
        server.benchmark(&command)?;
        server.after()?;
        let run = read(&folder.join(&name), self.serve, bench, number)?;
        write_json(file, &run)?;
        fs::remove_dir_all(&folder).or_code(Code::Output)?;
        experiment.print("[END BENCHMARK]")?;
        Ok(Some(run))
    }
}
