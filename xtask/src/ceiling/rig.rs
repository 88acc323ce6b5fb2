//! The server on the other core, and what it saw.

use super::process::now;
use crate::server::{Server, free_port, get, post};
use crate::shell;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// One load and the timing of the server that takes it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) concurrency: u32,
    pub(super) requests: u32,
    pub(super) output_tokens: u32,
    pub(super) ttft_ms: u32,
    pub(super) itl_ms: u32,
    /// One write for each token even when several are due.
    pub(super) flush_each: bool,
}

const fn scenario(
    name: &'static str,
    concurrency: u32,
    requests: u32,
    output_tokens: u32,
    (ttft_ms, itl_ms): (u32, u32),
    flush_each: bool,
) -> Scenario {
    Scenario { name, concurrency, requests, output_tokens, ttft_ms, itl_ms, flush_each }
}

/// `z`: no delay. `y`: no delay, one write for each token. `t`: timed as a real server.
pub(super) const SCENARIOS: [Scenario; 5] = [
    scenario("z64", 64, 2000, 128, (0, 0), false),
    scenario("z1024", 1024, 2000, 128, (0, 0), false),
    scenario("y64", 64, 2000, 128, (0, 0), true),
    scenario("t500", 500, 2000, 64, (50, 10), false),
    scenario("t1000", 1000, 4000, 64, (50, 10), false),
];

/// Which server plays the model.
#[derive(Clone, Debug)]
pub(super) enum Rig {
    /// `sim-server` of this repository.
    Simulated(PathBuf),
    /// Any program with `--port` and the routes `POST /mock/config?ttft_ms=…&itl_ms=…&yield=…`,
    /// `GET /mock/stats` and `GET /mock/arrivals`.
    Mock(PathBuf),
}

/// A server that runs one scenario.
#[derive(Debug)]
pub(super) struct Running {
    server: Server,
    /// For `sim-server`, whose times count from its own start: that start, in seconds since the
    /// epoch.
    epoch: Option<f64>,
}

/// The server's own account of a run.
#[derive(Debug)]
pub(super) struct Truth {
    /// Arrival of each request, in seconds since the epoch, earliest first.
    pub(super) arrivals: Vec<f64>,
    /// When the last token left, in seconds since the epoch.
    pub(super) last: f64,
    /// Mean time from request to first token, in milliseconds.
    pub(super) mean_ttft: Option<f64>,
    /// The 99th percentile of the time from token to token, in milliseconds.
    pub(super) p99_itl: Option<f64>,
}

impl Rig {
    /// Starts the server for one scenario, bound to one core.
    pub(super) fn start(&self, scenario: &Scenario, core: u32) -> Result<Running> {
        let port = free_port()?;
        let (Self::Simulated(program) | Self::Mock(program)) = self;
        let mut command = pinned(core, program);
        command.args(["--port", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server::start(&mut command, port)?;
        server.wait_ready("/v1/models", Duration::from_secs(20))?;
        let Scenario { ttft_ms, itl_ms, flush_each, .. } = scenario;
        let epoch = match self {
            Self::Mock(_) => {
                let flush = u8::from(*flush_each);
                let query = format!("ttft_ms={ttft_ms}&itl_ms={itl_ms}&yield={flush}");
                post(port, &format!("/mock/config?{query}"), "")?;
                None
            }
            Self::Simulated(_) => {
                let epoch = simulator_epoch(port)?;
                let timing = json!({"canned": {"ttft_ms": ttft_ms, "itl_ms": itl_ms}});
                let config = json!({"timing": timing, "yield_each": flush_each});
                post(port, "/sim/config", &config.to_string())?;
                Some(epoch)
            }
        };
        Ok(Running { server, epoch })
    }
}

impl Running {
    /// The address to give to a client.
    pub(super) fn base_url(&self) -> String {
        self.server.base_url()
    }

    /// What the server saw of everything sent to it so far.
    pub(super) fn truth(&self) -> Result<Truth> {
        match self.epoch {
            None => mock_truth(self.server.port()),
            Some(epoch) => simulator_truth(self.server.port(), epoch),
        }
    }
}

fn mock_truth(port: u16) -> Result<Truth> {
    let stats: Value = serde_json::from_str(&get(port, "/mock/stats")?)?;
    let mut arrivals: Vec<f64> = serde_json::from_str(&get(port, "/mock/arrivals")?)?;
    arrivals.sort_by(f64::total_cmp);
    for arrival in &mut arrivals {
        *arrival /= 1e6;
    }
    Ok(Truth {
        arrivals,
        last: stats["last_us"].as_f64().context("the server's stats have no `last_us`")? / 1e6,
        mean_ttft: stats["ttft"]["mean_ms"].as_f64(),
        p99_itl: stats["itl"]["p99_ms"].as_f64(),
    })
}

/// When the simulator's clock was at 0: one request, seen by both clocks.
fn simulator_epoch(port: u16) -> Result<f64> {
    let sent = now();
    post(port, "/v1/completions", r#"{"model":"sim","prompt":"a","max_tokens":1}"#)?;
    let truth: Value = serde_json::from_str(&get(port, "/sim/truth")?)?;
    let received = truth[0]["received_ns"].as_f64().context("the simulator saw no request")?;
    post(port, "/sim/reset", "")?;
    Ok(sent - received / 1e9)
}

fn simulator_truth(port: u16, epoch: f64) -> Result<Truth> {
    let records: Value = serde_json::from_str(&get(port, "/sim/truth")?)?;
    let records = records.as_array().context("the simulator's truth is no list")?;
    let seconds = |value: &Value| value.as_f64().map(|ns| ns / 1e9);
    let mut arrivals = Vec::new();
    let mut last: f64 = 0.0;
    let (mut ttfts, mut gaps) = (Vec::new(), Vec::new());
    for record in records {
        let received = seconds(&record["received_ns"]).context("a record without arrival")?;
        arrivals.push(epoch + received);
        let sent = record["sent"].as_array().into_iter().flatten();
        let times: Vec<f64> = sent.filter_map(|sent| seconds(&sent["at_ns"])).collect();
        ttfts.extend(times.first().map(|first| (first - received) * 1e3));
        gaps.extend(times.windows(2).map(|pair| (pair[1] - pair[0]) * 1e3));
        last = last.max(epoch + times.last().copied().unwrap_or(received));
    }
    arrivals.sort_by(f64::total_cmp);
    gaps.sort_by(f64::total_cmp);
    let mean_ttft = ttfts.iter().sum::<f64>() / ttfts.len() as f64;
    Ok(Truth {
        arrivals,
        last,
        mean_ttft: (!ttfts.is_empty()).then_some(mean_ttft),
        p99_itl: gaps.get(gaps.len().saturating_sub(1) * 99 / 100).copied(),
    })
}

/// A command that runs on one core only.
pub(super) fn pinned(core: u32, program: &Path) -> std::process::Command {
    let mut command = shell::command("taskset");
    command.args(["-c", &core.to_string()]).arg(program);
    command
}
