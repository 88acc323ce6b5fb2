//! The clients that are compared: how each is started and where it leaves its numbers.

use super::{Load, Place, Scenario};
use crate::shell;
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds for which wrk runs; it counts time, not requests.
const WRK_SECONDS: u32 = 5;

/// A client and the program that it is.
#[derive(Clone, Debug)]
pub(crate) enum Client {
    /// This repository's `bench-serving`, on one backend.
    Ours(PathBuf, &'static str),
    /// The vLLM project's Rust client.
    VllmRs(PathBuf),
    /// wrk: an HTTP load generator that parses no reply; a floor when events come packed.
    Wrk(PathBuf),
    /// The vLLM project's Python client.
    VllmPython(PathBuf),
    /// SGLang's Rust client; the program is a Python that has the package.
    SglangRust(PathBuf),
    /// SGLang's Python client, likewise.
    SglangPython(PathBuf),
    /// A client that spins, sends prepared bytes and reads: what it measures wrong, the rig does.
    Ideal(PathBuf),
}

/// What a client says about its run: the last line of its result.
#[derive(Debug, Default)]
pub(crate) struct Report(Value);

impl Report {
    /// The number under `key`, if there is one.
    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        self.0[key].as_f64()
    }

    /// The text under `key`, if there is one.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0[key].as_str()
    }

    /// The texts under `key`; none if there is no such list.
    pub(crate) fn texts(&self, key: &str) -> Vec<&str> {
        self.0[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The numbers under `key`; none if there is no such list.
    pub(crate) fn numbers(&self, key: &str) -> Vec<f64> {
        self.0[key].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
    }
}

impl Client {
    /// The name in the table.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Ours(_, "sglang") => "ours, native",
            Self::Ours(_, "sglang-oai-chat") => "ours, chat",
            Self::Ours(..) => OURS,
            Self::VllmRs(_) => "vllm-rs",
            Self::Wrk(_) => "wrk",
            Self::VllmPython(_) => "vllm",
            Self::SglangRust(_) => "sglang-rs",
            Self::SglangPython(_) => "sglang-py",
            Self::Ideal(_) => "ideal",
        }
    }

    /// True if the client can produce this load.
    pub(crate) fn can(&self, scenario: &Scenario) -> bool {
        match (self, scenario.load) {
            (Self::Wrk(_), load) => matches!(load, Load::Closed(_)),
            (Self::Ideal(_), load) => matches!(load, Load::Open(_)),
            _ => true,
        }
    }

    /// The requests that it sends in a scenario, where it can be told a number. The Python clients
    /// are slow enough to be told fewer.
    pub(crate) fn requests(&self, scenario: &Scenario) -> Option<u32> {
        let slow = matches!(self, Self::VllmPython(_) | Self::SglangPython(_));
        match (self, scenario.load) {
            (Self::Wrk(_), _) => None,
            (_, Load::Closed(concurrency)) if slow => {
                Some((scenario.requests / 4).max(2 * concurrency))
            }
            _ => Some(scenario.requests),
        }
    }

    /// The command for one scenario against a server on `port` of this machine. The client leaves
    /// its result in `folder`.
    pub(super) fn command(
        &self,
        scenario: &Scenario,
        port: u16,
        place: Place,
        folder: &Path,
    ) -> Result<Command> {
        let url = format!("http://127.0.0.1:{port}");
        let (Self::Ours(program, _)
        | Self::VllmRs(program)
        | Self::Wrk(program)
        | Self::VllmPython(program)
        | Self::SglangRust(program)
        | Self::SglangPython(program)
        | Self::Ideal(program)) = self;
        let mut command = place.command(program);
        command.current_dir(folder);
        let requests = self.requests(scenario).unwrap_or_default().to_string();
        match self {
            Self::Ours(_, backend) => {
                command.args(["--backend", backend, "--no-calibrate"]);
                sglang_flags(&mut command, scenario, &url, &requests);
            }
            Self::SglangRust(_) => {
                command.args(["-m", "sglang.benchmark.rust_client", "--backend", "sglang-oai"]);
                sglang_flags(&mut command, scenario, &url, &requests);
            }
            Self::SglangPython(_) => {
                command.args(["-m", "sglang.benchmark.serving", "--backend", "sglang-oai"]);
                sglang_flags(&mut command, scenario, &url, &requests);
            }
            Self::VllmRs(_) | Self::VllmPython(_) => {
                vllm_flags(&mut command, scenario, &url, &requests);
            }
            Self::Wrk(_) => {
                fs::write(folder.join("post.lua"), script(scenario))?;
                let Load::Closed(connections) = scenario.load else {
                    bail!("wrk knows closed loops only, and {} is an open one", scenario.name);
                };
                command
                    .args(["--threads", "1", "--connections", &connections.to_string()])
                    .args(["--duration", &format!("{WRK_SECONDS}s"), "--timeout", "30s"])
                    .args(["--script", "post.lua"])
                    .arg(format!("{url}/v1/completions"));
            }
            Self::Ideal(_) => {
                let Load::Open(rate) = scenario.load else {
                    bail!("the ideal client knows open loops only, and {} is none", scenario.name);
                };
                // Twice as many connections as are needed on average: it opens none later.
                let connections = (2.0 * scenario.in_flight()).ceil().max(64.0).to_string();
                command.args([rate.to_string(), requests]);
                command.args([scenario.output_tokens.to_string(), connections, port.to_string()]);
            }
        }
        // Nobody fetches a model, and nobody tells that it was used.
        for name in ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"] {
            command.env(name, "1");
        }
        command.env("DO_NOT_TRACK", "1").env("VLLM_NO_USAGE_STATS", "1");
        Ok(command)
    }

    /// Reads what the client left in `folder`.
    pub(super) fn report(&self, folder: &Path) -> Result<Report> {
        match self {
            Self::Wrk(_) => Ok(Report::default()),
            Self::Ideal(_) => spoken(&fs::read_to_string(folder.join("log"))?),
            _ => {
                let text = fs::read_to_string(folder.join(RESULT))?;
                let line = text.lines().next_back().context("the client left an empty result")?;
                // What Python writes as JSON is not always JSON.
                let line = line.replace(": Infinity", ": null").replace(": NaN", ": null");
                Ok(Report(serde_json::from_str(&line)?))
            }
        }
    }
}

/// Our own client on the route that the others use.
pub(crate) const OURS: &str = "ours";

/// The file that a client writes.
const RESULT: &str = "result.jsonl";

/// Prompt tokens of each request.
const INPUT_TOKENS: &str = "16";

fn tokenizer() -> PathBuf {
    shell::root().join("tests/realserver/models/tiny-llama")
}

/// The load, in the words of both families.
fn load_flags(command: &mut Command, scenario: &Scenario) {
    match scenario.load {
        Load::Closed(concurrency) => {
            command.args(["--max-concurrency", &concurrency.to_string()]);
        }
        Load::Open(rate) => {
            command.args(["--request-rate", &rate.to_string()]);
        }
    }
}

fn sglang_flags(command: &mut Command, scenario: &Scenario, url: &str, requests: &str) {
    let output_len = scenario.output_tokens.to_string();
    command.args(["--base-url", url, "--model"]).arg(tokenizer());
    command.args(["--served-model-name", "tiny", "--tokenizer"]).arg(tokenizer());
    command.args(["--dataset-name", "random-ids", "--random-input-len", INPUT_TOKENS]);
    command.args(["--random-output-len", &output_len, "--random-range-ratio", "1.0"]);
    command.args(["--num-prompts", requests, "--disable-tqdm", "--output-file", RESULT]);
    load_flags(command, scenario);
}

fn vllm_flags(command: &mut Command, scenario: &Scenario, url: &str, requests: &str) {
    let output_len = scenario.output_tokens.to_string();
    command.args(["bench", "serve", "--backend", "openai", "--base-url", url]);
    command.args(["--model", "tiny", "--tokenizer"]).arg(tokenizer());
    command.args(["--dataset-name", "random", "--random-input-len", INPUT_TOKENS]);
    command.args(["--random-output-len", &output_len, "--num-prompts", requests]);
    command.args(["--ignore-eos", "--disable-tqdm", "--percentile-metrics", "ttft,tpot,itl,e2el"]);
    command.args(["--metric-percentiles", "50,99", "--save-result"]);
    command.args(["--result-dir", ".", "--result-filename", RESULT]);
    load_flags(command, scenario);
}

/// The request that the other clients send, for wrk.
fn script(scenario: &Scenario) -> String {
    let body = json!({
        "model": "tiny",
        "prompt": "a b c d e f g h i j k l m n o p",
        "max_tokens": scenario.output_tokens,
        "stream": true,
        "ignore_eos": true,
        "stream_options": {"include_usage": true},
    });
    format!(
        "wrk.method = \"POST\"\nwrk.headers[\"Content-Type\"] = \"application/json\"\nwrk.body = [[{body}]]\n"
    )
}

/// What the ideal client prints: `TTFT ms, kernel stamps: mean 51.07 p50 51.0 p99 52.2`.
fn spoken(log: &str) -> Result<Report> {
    let line = log.lines().find_map(|line| line.strip_prefix("TTFT ms, kernel stamps:"));
    let words: Vec<&str> = line.context("no line with kernel stamps")?.split_whitespace().collect();
    let mut report = json!({});
    for pair in words.chunks_exact(2) {
        report[format!("{}_ttft_ms", pair[0])] = json!(pair[1].parse::<f64>()?);
    }
    Ok(Report(report))
}

/// The program of that name that a shell would find.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ideal_clients_words_are_numbers() {
        let log = "TTFT ms, kernel stamps: mean 51.070 p50 51.0 p99 52.2\nTTFT ms, time of read: x";
        let report = spoken(log).expect("a report");
        assert_eq!(report.number("mean_ttft_ms"), Some(51.07));
        assert_eq!(report.number("p99_ttft_ms"), Some(52.2));
        assert!(spoken("").is_err());
    }
}
