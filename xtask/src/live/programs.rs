//! The programs beside `bench-serving`, against a live server.

use super::Family;
use crate::server::free_port;
use crate::{shell, smoke};
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const BATCH_SIZES: [u64; 2] = [1, 4];
const INPUT_LENS: [u64; 2] = [64, 256];
const OUTPUT_LENS: [u64; 2] = [16, 32];

/// Tokens of a reply of `send-one`.
const REPLY: u64 = 24;

/// What the programs need to know of a server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Programs<'a> {
    pub(super) family: Family,
    /// The folder of the programs.
    pub(super) binaries: &'a Path,
    pub(super) tokenizer: &'a Path,
    pub(super) url: &'a str,
}

impl Programs<'_> {
    fn command(&self, program: &str, folder: &Path) -> Command {
        let mut command = shell::command(self.binaries.join(program));
        command.current_dir(folder);
        command
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        smoke::empty_folder(&format!("live/{}-{name}", self.family.name()))
    }

    /// A sweep over batch sizes and lengths; on SGLang every case once more, profiled.
    pub(super) fn one_batch(&self) -> Result<()> {
        let folder = self.folder("one-batch")?;
        let mut sweep = self.command("bench-one-batch-server", &folder);
        sweep.args(["--show-report", "--dataset-name", "random-ids"]);
        for (flag, values) in [
            ("--batch-size", BATCH_SIZES),
            ("--input-len", INPUT_LENS),
            ("--output-len", OUTPUT_LENS),
        ] {
            sweep.arg(flag).args(values.map(|value| value.to_string()));
        }
        self.place(&mut sweep, self.url);
        let profiled = matches!(self.family, Family::Sglang);
        if profiled {
            sweep.args(["--profile", "--profile-steps", "3", "--profile-output-dir", "traces"]);
        }
        shell::run(&mut sweep)?;
        let lines = lines(&folder.join("result.jsonl"))?;
        check_sweep(&lines)?;
        if profiled {
            let traces = traces(&folder.join("traces"))?.len();
            ensure!(traces == lines.len(), "{traces} traces of {} cases", lines.len());
        }
        Ok(())
    }

    /// Where the server of a sweep is and what it speaks.
    fn place(&self, sweep: &mut Command, url: &str) {
        let backend = if matches!(self.family, Family::Vllm) { "vllm" } else { "sglang" };
        sweep.args(["--base-url", url, "--backend", backend, "--local-tokenizer-path"]);
        sweep.arg(self.tokenizer);
    }

    /// One small batch.
    fn one_case(&self, folder: &Path, url: &str) -> Command {
        let mut sweep = self.command("bench-one-batch-server", folder);
        sweep.args(["--batch-size", "2", "--input-len", "64", "--output-len", "16"]);
        sweep.args(["--dataset-name", "random-ids"]);
        self.place(&mut sweep, url);
        sweep
    }

    /// One case on a server that the program starts by `command` and stops.
    pub(super) fn launch(&self, script: &Path, venv: &Path, model: &Path) -> Result<()> {
        let folder = self.folder("launch")?;
        let port = free_port()?;
        // Every process that comes of the command inherits this.
        let mark = format!("SERVEBENCH_LIVE_MARK={}-{port}", std::process::id());
        let words = [script, venv, model].map(|word| format!("'{}'", word.display()));
        let server = format!("env {mark} {} {port}", words.join(" "));
        let mut sweep = self.one_case(&folder, &format!("http://127.0.0.1:{port}"));
        sweep.args(["--launch", &server]);
        shell::run(&mut sweep)?;
        let lines = lines(&folder.join("result.jsonl"))?;
        ensure!(lines.len() == 1, "{} results, not one", lines.len());
        check_case(&lines[0], [2, 64, 16])?;
        for _ in 0..50 {
            if marked(&mark) == 0 {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        bail!("{} processes of the server are still there", marked(&mark))
    }

    /// The profiler by hand, and the other control calls. `traces_at` is where a server that chose its
    /// own folder writes.
    pub(super) fn profiler(&self, traces_at: &Path) -> Result<()> {
        let folder = self.folder("profiler")?;
        let profiler = |words: &[&str]| {
            let mut profiler = self.command("profiler", &folder);
            profiler.args(words).args(["--url", self.url]);
            profiler
        };
        shell::run(&mut profiler(&["flush-cache"]))?;
        if matches!(self.family, Family::Vllm) {
            shell::run(&mut profiler(&["start"]))?;
            // The trace of a whole sweep takes minutes to be written.
            shell::run(&mut self.one_case(&folder, self.url))?;
            shell::run(&mut profiler(&["stop"]))?;
            ensure!(!traces(traces_at)?.is_empty(), "no trace in {}", traces_at.display());
            return Ok(());
        }
        let info: Value = serde_json::from_str(&shell::read(&mut profiler(&["server-info"]))?)?;
        ensure!(info["tokenizer_path"].is_string(), "server-info tells no tokenizer");

        let by_hand = folder.join("by-hand");
        // `start` sends the path as it is, and the server runs in a folder of its own.
        shell::run(profiler(&["start"]).arg("--output-dir").arg(&by_hand))?;
        self.send_one(&[], &folder)?;
        shell::run(&mut profiler(&["stop"]))?;
        ensure!(traces(&by_hand)?.len() == 1, "start and stop left no trace");

        let mut by_stage = profiler(&["--num-steps", "3", "--profile-by-stage"]);
        by_stage.args(["--output-dir", "by-stage", "--wait", "120"]);
        let mut running = by_stage.stderr(Stdio::piped()).spawn()?;
        let mut talk = BufReader::new(running.stderr.take().context("no standard error")?);
        // A request that was decoding before would leave no prefill to profile.
        let mut said = talk.by_ref().lines().map_while(Result::ok);
        ensure!(
            said.any(|line| line.starts_with("profiler started")),
            "the profiler did not start"
        );
        // Steps are counted only while there is work.
        let status = loop {
            if let Some(status) = running.try_wait()? {
                break status;
            }
            self.send_one(&[], &folder)?;
        };
        ensure!(status.success(), "the profiler ended with {status}");
        let names: Vec<String> = traces(&folder.join("by-stage"))?
            .iter()
            .map(|path| path.to_string_lossy().into_owned())
            .collect();
        for stage in ["-EXTEND.", "-DECODE."] {
            ensure!(names.iter().any(|name| name.contains(stage)), "no {stage} in {names:?}");
        }
        Ok(())
    }

    /// One prompt in all ways.
    pub(super) fn send_ones(&self) -> Result<()> {
        let folder = self.folder("send-one")?;
        self.send_one(&[], &folder)?;
        self.send_one(&["--stream"], &folder)?;
        let batch =
            self.send_one(&["--stream", "--batch-size", "3", "--different-prompts"], &folder)?;
        let tokens = cell(&batch, "Batch tokens")?;
        ensure!(tokens == (3 * REPLY).to_string(), "{tokens} tokens of a batch of 3");
        let profiled =
            ["--profile", "--profile-steps", "3", "--profile-output-dir", "traces"].as_slice();
        self.send_one(profiled, &folder)?;
        ensure!(traces(&folder.join("traces"))?.len() == 1, "send-one --profile left no trace");
        Ok(())
    }

    /// What `send-one` prints, its tokens checked.
    fn send_one(&self, words: &[&str], folder: &Path) -> Result<String> {
        let mut send = self.command("send-one", folder);
        send.args(["--base-url", self.url, "--max-new-tokens", &REPLY.to_string()]).args(words);
        let text = shell::read(&mut send)?;
        println!("{text}");
        let tokens = cell(&text, "Tokens")?;
        ensure!(tokens == REPLY.to_string(), "{tokens} tokens, not {REPLY}");
        Ok(text)
    }
}

fn lines(file: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    text.lines().map(|line| serde_json::from_str(line).context("a result line")).collect()
}

/// Every case is there, in its order.
fn check_sweep(lines: &[Value]) -> Result<()> {
    let mut cases = Vec::new();
    for batch_size in BATCH_SIZES {
        for input_len in INPUT_LENS {
            cases.extend(OUTPUT_LENS.map(|output_len| [batch_size, input_len, output_len]));
        }
    }
    ensure!(lines.len() == cases.len(), "{} results of {} cases", lines.len(), cases.len());
    lines.iter().zip(cases).try_for_each(|(line, case)| check_case(line, case))
}

/// All tokens came, and the times are in their order.
fn check_case(line: &Value, case: [u64; 3]) -> Result<()> {
    let [batch_size, input_len, output_len] = case;
    for (key, wanted) in [
        ("batch_size", batch_size),
        ("input_len", input_len),
        ("output_len", output_len),
        ("total_input_tokens", batch_size * input_len),
        ("total_output_tokens", batch_size * output_len),
        ("num_early_stopped", 0),
    ] {
        ensure!(line[key] == wanted, "`{key}` of {case:?} is {}, not {wanted}", line[key]);
    }
    ensure!(line["simulated"] == false, "a real server was taken for a simulated one");
    let number = |key: &str| {
        line[key].as_f64().with_context(|| format!("`{key}` of {case:?} is {}", line[key]))
    };
    let (first, last, latency) = (number("first_ttft")?, number("last_ttft")?, number("latency")?);
    ensure!(
        0.0 < first && first <= last && last < latency,
        "{case:?}: first TTFT {first} s, last {last} s, latency {latency} s"
    );
    for key in ["input_throughput", "output_throughput", "overall_throughput"] {
        ensure!(number(key)? > 0.0, "`{key}` of {case:?} is not positive");
    }
    Ok(())
}

/// The trace files below a folder.
fn traces(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(traces(&path)?);
        } else if path.to_string_lossy().ends_with(".json.gz") {
            ensure!(fs::metadata(&path)?.len() > 0, "{} is empty", path.display());
            found.push(path);
        }
    }
    Ok(found)
}

/// The first cell below a heading in the tables of `text`.
fn cell<'a>(text: &'a str, heading: &str) -> Result<&'a str> {
    let cells = |line: &'a str| line.split('|').map(str::trim).collect::<Vec<_>>();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(place) = cells(line).iter().position(|cell| *cell == heading) {
            let row = lines.nth(1).context("the table has no row")?;
            return cells(row).get(place).copied().context("the row is short");
        }
    }
    bail!("no `{heading}` in:\n{text}")
}

/// Running processes that have `mark` in their environment.
fn marked(mark: &str) -> usize {
    let has_it = |process: &fs::DirEntry| {
        let environment = fs::read(process.path().join("environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| OsStr::new(mark).as_encoded_bytes() == entry)
    };
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(has_it).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line() -> Value {
        json!({"batch_size": 2, "input_len": 64, "output_len": 16, "total_input_tokens": 128,
            "total_output_tokens": 32, "num_early_stopped": 0, "simulated": false,
            "first_ttft": 0.1, "last_ttft": 0.1, "latency": 0.3, "input_throughput": 1.0,
            "output_throughput": 1.0, "overall_throughput": 1.0})
    }

    #[test]
    fn a_case_must_have_its_tokens_and_times() {
        assert!(check_case(&line(), [2, 64, 16]).is_ok());
        for (key, value) in [
            ("total_output_tokens", json!(31)),
            ("latency", json!(0.1)),
            ("output_throughput", Value::Null),
            ("simulated", json!(true)),
        ] {
            let mut line = line();
            line[key] = value;
            assert!(check_case(&line, [2, 64, 16]).is_err(), "{key}");
        }
        assert!(check_sweep(&[line()]).is_err());
    }

    #[test]
    fn cells_are_found_by_their_heading() {
        let text = "x\n+---+---+\n| A | B c |\n+---+---+\n| 1 |  24 |\n+---+---+\n";
        assert_eq!(cell(text, "B c").expect("a cell"), "24");
        assert!(cell(text, "D").is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processes_are_found_by_their_environment() {
        use std::io::{Read, Write};
        use std::process::Stdio;
        let mark = format!("SERVEBENCH_TEST_MARK={}", std::process::id());
        let (name, value) = mark.split_once('=').expect("a value");
        let mut command = Command::new("cat");
        command.env(name, value).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("cat");
        // It has its environment for sure once it answers.
        let (mut to, mut from) =
            (child.stdin.take().expect("in"), child.stdout.take().expect("out"));
        to.write_all(b"?").expect("written");
        from.read_exact(&mut [0]).expect("an answer");
        let found = marked(&mark);
        drop(to);
        child.wait().expect("ended");
        assert_eq!((found, marked(&mark)), (1, 0));
    }
}
