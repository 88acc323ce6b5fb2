//! The server on the other core.

use super::Place;
use super::process::now;
use super::scenario::Scenario;
use super::truth::Truth;
use crate::server::{Server, free_port, get, post};
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

/// Which server plays the model.
#[derive(Clone, Debug)]
pub(crate) enum Rig {
    /// `sim-server` of this repository.
    Simulated(PathBuf),
    /// Any program with `--port` and the routes that the flag `--mock` names.
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

impl Rig {
    /// What to call it.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Simulated(_) => "sim-server",
            Self::Mock(_) => "a mock server",
        }
    }

    /// Starts the server for one scenario.
    pub(super) fn start(&self, scenario: &Scenario, place: Place) -> Result<Running> {
        let port = free_port()?;
        let (Self::Simulated(program) | Self::Mock(program)) = self;
        let mut command = place.command(program);
        command.args(["--port", &port.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Server::start_leader(&mut command, port)?;
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
    /// The port it serves on.
    pub(super) fn port(&self) -> u16 {
        self.server.port()
    }

    /// What the server saw of everything sent to it so far; of `measured` requests where that many
    /// were to be measured and the rest came before.
    pub(super) fn truth(&self, measured: Option<u32>) -> Result<Truth> {
        let port = self.port();
        match self.epoch {
            None => {
                let (stats, arrivals) = (get(port, "/mock/stats")?, get(port, "/mock/arrivals")?);
                Truth::of_mock(&stats, &arrivals, measured)
            }
            Some(epoch) => Truth::of_simulator(&get(port, "/sim/truth")?, epoch, measured),
        }
    }
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
