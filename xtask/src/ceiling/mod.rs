//! `cargo xtask bench ceiling`: how much a client costs and how wrong it is, beside its peers.
//!
//! The server runs on one core, the client on another; both sides are measured. Only ratios
//! between rows of one table mean something on another machine.

mod client;
mod process;
mod rig;

use crate::{shell, smoke};
use anyhow::{Result, bail, ensure};
use client::{Client, Report};
use rig::{Rig, SCENARIOS, Scenario, Truth};
use std::path::PathBuf;
use std::time::Duration;

/// Client against client on one core each, with the server on another.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Scenarios to run (comma-separated) [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    scenarios: Vec<String>,
    /// The bench-serving to measure [default: the release build of this checkout]
    #[arg(long, value_name = "PATH")]
    ours: Option<PathBuf>,
    /// Backends of bench-serving to measure (comma-separated); none: the peers alone
    #[arg(
        long,
        num_args = 0..,
        value_delimiter = ',',
        value_name = "NAME",
        default_value = "sglang-oai,sglang"
    )]
    backends: Vec<Backend>,
    /// The vLLM project's Rust client [default: `vllm-rs` on PATH]
    #[arg(long, value_name = "PATH")]
    vllm_rs: Option<PathBuf>,
    /// wrk [default: `wrk` on PATH]
    #[arg(long, value_name = "PATH")]
    wrk: Option<PathBuf>,
    /// A mock server to use in place of sim-server
    #[arg(long, value_name = "PATH")]
    mock: Option<PathBuf>,
    /// Core of the server
    #[arg(long, default_value_t = 0, value_name = "CORE")]
    server_core: u32,
    /// Core of the client
    #[arg(long, default_value_t = 1, value_name = "CORE")]
    client_core: u32,
    /// Runs of each cell; the one with the median request rate is shown
    #[arg(long, default_value_t = 1, value_name = "N")]
    repeat: usize,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Backend {
    SglangOai,
    SglangOaiChat,
    Sglang,
}

impl Backend {
    fn name(self) -> &'static str {
        match self {
            Self::SglangOai => "sglang-oai",
            Self::SglangOaiChat => "sglang-oai-chat",
            Self::Sglang => "sglang",
        }
    }
}

/// One cell of the comparison.
#[derive(Debug)]
struct Row {
    client: String,
    requests_per_second: f64,
    cpu_ms_per_request: f64,
    cpu_us_per_token: f64,
    peak_memory_mb: f64,
    first_request_s: f64,
    report: Report,
    truth: Truth,
}

/// Longest time for one run of one client.
const LIMIT: Duration = Duration::from_mins(2);

/// Runs every client in every scenario and prints one table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    ensure!(shell::has("taskset", "--version"), "taskset (util-linux) is needed to bind to a core");
    let scenarios = chosen(&arguments.scenarios)?;
    let rig = match &arguments.mock {
        Some(mock) => Rig::Mock(mock.clone()),
        None => Rig::Simulated(shell::release_binaries(&["sim-server"])?.join("sim-server")),
    };
    let clients = clients(arguments)?;
    let ticks = process::ticks_per_second()?;
    let mut lines = Vec::new();
    for scenario in scenarios {
        let mut rows = Vec::new();
        for client in &clients {
            let mut runs = Vec::new();
            for _ in 0..arguments.repeat.max(1) {
                runs.push(measure(arguments, &rig, client, scenario, ticks)?);
            }
            runs.sort_by(|a, b| a.requests_per_second.total_cmp(&b.requests_per_second));
            rows.push(runs.swap_remove(runs.len() / 2));
        }
        lines.extend(table_lines(scenario, &rows));
    }
    println!("\n{HEAD}\n{}", lines.join("\n"));
    println!("\nRatios are to vllm-rs where it ran. wrk parses no reply: its rows are a floor.");
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| SCENARIOS.iter().find(|scenario| scenario.name == name);
    names
        .iter()
        .map(|name| match find(name) {
            Some(scenario) => Ok(scenario),
            None => {
                bail!("no scenario is called `{name}`; there are {:?}", SCENARIOS.map(|s| s.name))
            }
        })
        .collect()
}

/// Ours, and those peers that are there; a missing one is named.
fn clients(arguments: &Arguments) -> Result<Vec<Client>> {
    let mut clients = Vec::new();
    if !arguments.backends.is_empty() {
        let ours = match &arguments.ours {
            Some(ours) => ours.clone(),
            None => shell::release_binaries(&["bench-serving"])?.join("bench-serving"),
        };
        let backends = arguments.backends.iter();
        clients.extend(backends.map(|backend| Client::Ours(ours.clone(), backend.name())));
    }
    let find = |given: &Option<PathBuf>, name: &str| {
        let found = given.clone().or_else(|| on_path(name));
        if found.is_none() {
            println!("{name} is not on PATH; its rows are left out");
        }
        found
    };
    clients.extend(find(&arguments.vllm_rs, "vllm-rs").map(Client::VllmRs));
    clients.extend(find(&arguments.wrk, "wrk").map(Client::Wrk));
    Ok(clients)
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn measure(
    arguments: &Arguments,
    rig: &Rig,
    client: &Client,
    scenario: &Scenario,
    ticks: f64,
) -> Result<Row> {
    let folder = smoke::empty_folder(&format!("ceiling/{}-{}", scenario.name, client.name()))?;
    let server = rig.start(scenario, arguments.server_core)?;
    let mut command =
        client.command(scenario, &server.base_url(), arguments.client_core, &folder)?;
    let log = std::fs::File::create(folder.join("log"))?;
    command.stdout(log.try_clone()?).stderr(log);
    let usage = process::watch(&mut command, ticks, LIMIT)?;
    ensure!(
        usage.status.success(),
        "{} in {} ended with {}; its log is in {}",
        client.name(),
        scenario.name,
        usage.status,
        folder.display()
    );
    let truth = server.truth()?;
    let report = client.report(&folder)?;
    // What came before the measured requests was warm-up.
    let all = truth.arrivals.len();
    let measured = client.requests(scenario).map_or(all, |count| all.min(count as usize));
    ensure!(measured > 0, "{} sent nothing in {}", client.name(), scenario.name);
    let begin = truth.arrivals[all - measured];
    let seconds = (truth.last - begin).max(1e-9);
    let cpu = usage.cpu_between(begin, truth.last);
    let requests = measured as f64;
    let row = Row {
        client: client.name(),
        requests_per_second: requests / seconds,
        cpu_ms_per_request: cpu / requests * 1e3,
        cpu_us_per_token: cpu / requests / f64::from(scenario.output_tokens) * 1e6,
        peak_memory_mb: usage.peak_memory as f64 / 1e6,
        first_request_s: truth.arrivals[0] - usage.launched,
        report,
        truth,
    };
    println!(
        "{} {}: {:.0} req/s, {:.3} ms CPU a request",
        scenario.name, row.client, row.requests_per_second, row.cpu_ms_per_request
    );
    Ok(row)
}

const HEAD: &str = "\
| scenario | client | req/s | × | CPU ms/req | × | CPU µs/token | peak MB | launch → first request s | \
TTFT mean / p99 ms | server's mean | ITL p99 ms | server's p99 |
|---|---|---|---|---|---|---|---|---|---|---|---|---|";

fn table_lines(scenario: &Scenario, rows: &[Row]) -> Vec<String> {
    let reference = rows.iter().find(|row| row.client == "vllm-rs");
    let ratio = |ours: f64, theirs: fn(&Row) -> f64| {
        reference.map_or("-".to_owned(), |row| format!("{:.2}", ours / theirs(row)))
    };
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    rows.iter()
        .map(|row| {
            format!(
                "| {} | {} | {:.0} | {} | {:.3} | {} | {:.2} | {:.0} | {:.2} | {} / {} | {} | {} | {} |",
                scenario.name,
                row.client,
                row.requests_per_second,
                ratio(row.requests_per_second, |row| row.requests_per_second),
                row.cpu_ms_per_request,
                ratio(row.cpu_ms_per_request, |row| row.cpu_ms_per_request),
                row.cpu_us_per_token,
                row.peak_memory_mb,
                row.first_request_s,
                number(row.report.mean_ttft),
                number(row.report.p99_ttft),
                number(row.truth.mean_ttft),
                number(row.report.p99_itl),
                number(row.truth.p99_itl),
            )
        })
        .collect()
}
