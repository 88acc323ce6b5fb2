//! The clients that are compared: how each is started and where it leaves its numbers.

use super::rig::{Scenario, pinned};
use crate::shell;
use anyhow::{Context, Result};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Seconds for which wrk runs; it counts time, not requests.
const WRK_SECONDS: u32 = 5;

/// A client and the program that it is.
#[derive(Clone, Debug)]
pub(super) enum Client {
    /// This repository's `bench-serving`, on one backend.
    Ours(PathBuf, &'static str),
    /// The vLLM project's Rust client.
    VllmRs(PathBuf),
    /// wrk: an HTTP load generator that parses no reply; a floor when events come packed.
    Wrk(PathBuf),
}

/// What a client says about its run, in milliseconds; absent where it does not measure it.
#[derive(Debug, Default)]
pub(super) struct Report {
    pub(super) mean_ttft: Option<f64>,
    pub(super) p99_ttft: Option<f64>,
    pub(super) p99_itl: Option<f64>,
}

impl Client {
    /// The name in the table.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Ours(_, backend) => format!("bench-serving {backend}"),
            Self::VllmRs(_) => "vllm-rs".to_owned(),
            Self::Wrk(_) => "wrk".to_owned(),
        }
    }

    /// The requests that it sends in a scenario, where it can be told a number.
    pub(super) fn requests(&self, scenario: &Scenario) -> Option<u32> {
        (!matches!(self, Self::Wrk(_))).then_some(scenario.requests)
    }

    /// The command for one scenario. The client leaves its result in `folder`.
    pub(super) fn command(
        &self,
        scenario: &Scenario,
        url: &str,
        core: u32,
        folder: &Path,
    ) -> Result<Command> {
        let tokenizer = shell::root().join("tests/realserver/models/tiny-llama");
        let output_len = scenario.output_tokens.to_string();
        let requests = scenario.requests.to_string();
        let concurrency = scenario.concurrency.to_string();
        let (Self::Ours(program, _) | Self::VllmRs(program) | Self::Wrk(program)) = self;
        let mut command = pinned(core, program);
        command.current_dir(folder);
        match self {
            Self::Ours(_, backend) => {
                command
                    .args(["--backend", backend, "--base-url", url, "--model", "tiny"])
                    .arg("--tokenizer")
                    .arg(&tokenizer)
                    .args(["--dataset-name", "random-ids", "--random-input-len", "16"])
                    .args(["--random-output-len", &output_len, "--random-range-ratio", "1.0"])
                    .args(["--num-prompts", &requests, "--max-concurrency", &concurrency])
                    .args(["--disable-tqdm", "--output-file", "result.jsonl"]);
            }
            Self::VllmRs(_) => {
                command
                    .args(["bench", "serve", "--backend", "openai", "--base-url", url])
                    .args(["--model", "tiny", "--tokenizer"])
                    .arg(&tokenizer)
                    .args(["--dataset-name", "random", "--random-input-len", "16"])
                    .args(["--random-output-len", &output_len, "--num-prompts", &requests])
                    .args(["--max-concurrency", &concurrency, "--ignore-eos", "--disable-tqdm"])
                    .args(["--percentile-metrics", "ttft,tpot,itl,e2el"])
                    .args(["--metric-percentiles", "50,99", "--save-result"])
                    .args(["--result-dir", ".", "--result-filename", "result.jsonl"])
                    .env("HF_HUB_OFFLINE", "1")
                    .env("DO_NOT_TRACK", "1");
            }
            Self::Wrk(_) => {
                fs::write(folder.join("post.lua"), script(scenario))?;
                command
                    .args(["--threads", "1", "--connections", &concurrency])
                    .args(["--duration", &format!("{WRK_SECONDS}s"), "--timeout", "30s"])
                    .args(["--script", "post.lua"])
                    .arg(format!("{url}/v1/completions"));
            }
        }
        Ok(command)
    }

    /// Reads what the client left in `folder`.
    pub(super) fn report(&self, folder: &Path) -> Result<Report> {
        if matches!(self, Self::Wrk(_)) {
            return Ok(Report::default());
        }
        let text = fs::read_to_string(folder.join("result.jsonl"))?;
        let line = text.lines().next_back().context("the client left an empty result")?;
        let line: Value = serde_json::from_str(line)?;
        Ok(Report {
            mean_ttft: line["mean_ttft_ms"].as_f64(),
            p99_ttft: line["p99_ttft_ms"].as_f64(),
            p99_itl: line["p99_itl_ms"].as_f64(),
        })
    }
}

/// The request that the other clients send, for wrk.
fn script(scenario: &Scenario) -> String {
    let body = serde_json::json!({
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
