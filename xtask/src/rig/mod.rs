//! A server on one core, a client on another, and what both say about one load.

mod client;
mod place;
mod process;
mod scenario;
mod server;
mod truth;

pub(crate) use client::{Client, OURS, Report, on_path};
pub(crate) use place::{Place, missing};
pub(crate) use process::{Usage, Watch, watch};
pub(crate) use scenario::{Load, SCENARIOS, Scenario, scenario};
pub(crate) use server::Rig;
pub(crate) use truth::{Spread, Truth, percentile};

use crate::{shell, smoke};
use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

/// Longest time for one run of one client.
const LIMIT: Duration = Duration::from_mins(2);

/// Where server and client run, and which programs they are.
#[derive(clap::Args, Debug)]
pub(crate) struct Bed {
    /// The bench-serving to measure [default: the release build of this checkout]
    #[arg(long, value_name = "PATH")]
    ours: Option<PathBuf>,
    /// The vLLM project's Rust client [default: `vllm-rs` on PATH]
    #[arg(long, value_name = "PATH")]
    vllm_rs: Option<PathBuf>,
    /// A mock server to use in place of sim-server
    ///
    /// It takes `--port` and answers `POST /mock/config?ttft_ms=N&itl_ms=N&yield=0|1`, `GET
    /// /mock/stats` and `GET /mock/arrivals`.
    #[arg(long, value_name = "PATH")]
    mock: Option<PathBuf>,
    /// The sim-server to use [default: the release build of this checkout]
    #[arg(long, value_name = "PATH", conflicts_with = "mock")]
    sim_server: Option<PathBuf>,
    /// Core of the server
    #[arg(long, default_value_t = 0, value_name = "CORE")]
    server_core: u32,
    /// Core of the client
    #[arg(long, default_value_t = 1, value_name = "CORE")]
    client_core: u32,
    /// Priority of server and client, so that a busy machine disturbs less [default: -15 as root, else 0]
    #[arg(long, allow_negative_numbers = true, value_name = "N")]
    nice: Option<i32>,
}

/// One run of one client: what it said, what it cost, and what the server saw.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) report: Report,
    pub(crate) usage: Usage,
    pub(crate) truth: Truth,
}

impl Bed {
    /// The server that is asked for; built if it is this repository's and no other is given.
    pub(crate) fn rig(&self) -> Result<Rig> {
        Ok(match (&self.mock, &self.sim_server) {
            (Some(mock), _) => Rig::Mock(mock.clone()),
            (None, Some(server)) => Rig::Simulated(server.clone()),
            (None, None) => {
                Rig::Simulated(shell::release_binaries(&["sim-server"])?.join("sim-server"))
            }
        })
    }

    /// The `bench-serving` that is asked for; built if none is given.
    pub(crate) fn ours(&self) -> Result<PathBuf> {
        match &self.ours {
            Some(ours) => Ok(ours.clone()),
            None => Ok(shell::release_binaries(&["bench-serving"])?.join("bench-serving")),
        }
    }

    /// The vLLM project's Rust client, if it is there.
    pub(crate) fn vllm_rs(&self) -> Option<Client> {
        self.vllm_rs.clone().or_else(|| on_path("vllm-rs")).map(Client::VllmRs)
    }

    /// Where the server runs.
    pub(crate) fn server_place(&self) -> Result<Place> {
        Ok(Place { core: self.server_core, nice: self.nice()? })
    }

    /// Where the client runs.
    pub(crate) fn client_place(&self) -> Result<Place> {
        Ok(Place { core: self.client_core, nice: self.nice()? })
    }

    fn nice(&self) -> Result<i32> {
        match self.nice {
            Some(nice) => Ok(nice),
            None => Ok(if place::is_root()? { -15 } else { 0 }),
        }
    }

    /// Runs `client` once against a server of its own. `during` is called while it runs, again and
    /// again; `extra` is added to the client's arguments.
    pub(crate) fn run(
        &self,
        rig: &Rig,
        client: &Client,
        scenario: &Scenario,
        place: Place,
        extra: &[&str],
        during: &mut Watch<'_>,
    ) -> Result<Run> {
        let folder = smoke::empty_folder(&format!("rig/{}-{}", scenario.name, client.name()))?;
        let server = rig.start(scenario, self.server_place()?)?;
        let mut command = client.command(scenario, server.port(), place, &folder)?;
        let log = File::create(folder.join("log"))?;
        command.args(extra).stdout(log.try_clone()?).stderr(log);
        let usage = process::watch(&mut command, LIMIT, during)?;
        ensure!(
            usage.status.success(),
            "{} in {} ended with {}; its log is in {}",
            client.name(),
            scenario.name,
            usage.status,
            folder.display()
        );
        let truth = server.truth(client.requests(scenario))?;
        ensure!(!truth.arrivals.is_empty(), "{} sent nothing in {}", client.name(), scenario.name);
        let report = client
            .report(&folder)
            .with_context(|| format!("the result of {} in {}", client.name(), scenario.name))?;
        Ok(Run { report, usage, truth })
    }
}
