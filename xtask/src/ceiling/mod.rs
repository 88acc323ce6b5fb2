//! `cargo xtask bench ceiling`: how much a client costs and how wrong it is, beside its peers.
//!
//! The server runs on one core, the client on another; both sides are measured, and clients take
//! turns. Only ratios between rows of one table mean something on another machine.

mod arrivals;
mod figures;
mod goals;

use crate::rig::{self, Bed, Client, Rig, SCENARIOS, Scenario, on_path};
use crate::shell;
use anyhow::{Result, bail, ensure};
use arrivals::Arrivals;
use figures::{Figure, Figures};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Client against client on one core each, with the server on another.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Scenarios to run (comma-separated) [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    scenarios: Vec<String>,
    /// Clients to run, as the table names them (comma-separated) [default: all that are there]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    clients: Vec<String>,
    #[command(flatten)]
    bed: Bed,
    /// wrk [default: `wrk` on PATH]
    #[arg(long, value_name = "PATH")]
    wrk: Option<PathBuf>,
    /// The vLLM project's Python client [default: `vllm` on PATH]
    #[arg(long, value_name = "PATH")]
    vllm: Option<PathBuf>,
    /// A Python with SGLang, for its Rust and its Python client [default: `python3` on PATH if it has it]
    #[arg(long, value_name = "PATH")]
    sglang_python: Option<PathBuf>,
    /// A client that does nothing but send and read: `PROGRAM RATE REQUESTS TOKENS CONNECTIONS PORT`
    #[arg(long, value_name = "PATH")]
    ideal: Option<PathBuf>,
    /// Rounds of each scenario, in each of which every client runs once; medians are shown
    #[arg(long, default_value_t = 1, value_name = "N")]
    repeat: u32,
}

/// One client in one scenario, over all rounds.
#[derive(Debug, Default)]
struct Cell {
    runs: Vec<Figures>,
    arrivals: Vec<Arrivals>,
}

/// Runs every client in every scenario and prints the table.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(missing) = rig::missing() {
        bail!("{missing} is needed to give each process a core and a priority (Linux)");
    }
    let scenarios = chosen(&arguments.scenarios)?;
    let rig = arguments.bed.rig()?;
    let clients = clients(arguments)?;
    ensure!(!clients.is_empty(), "none of the clients asked for is there");
    let start = Instant::now();
    let (mut lines, mut arrival_lines) = (Vec::new(), Vec::new());
    for scenario in scenarios {
        let clients: Vec<&Client> =
            clients.iter().filter(|client| takes_part(client, scenario)).collect();
        let mut cells: Vec<Cell> = clients.iter().map(|_| Cell::default()).collect();
        for round in 0..arguments.repeat.max(1) {
            for (client, cell) in clients.iter().zip(&mut cells) {
                measure(arguments, &rig, client, scenario, round, cell)?;
            }
        }
        let names = clients.iter().map(|client| client.name());
        if is_about_arrivals(scenario) {
            let lines = names
                .zip(&cells)
                .map(|(name, cell)| Arrivals::line(scenario, name, &cell.arrivals));
            arrival_lines.extend(lines);
        } else {
            let medians = cells.iter().map(|cell| figures::medians(&cell.runs));
            lines.extend(table_lines(scenario.name, &names.zip(medians).collect::<Vec<_>>()));
        }
    }
    print(&rig, arguments.repeat, &lines, &arrival_lines);
    println!("\nTook {:.0} s.", start.elapsed().as_secs_f64());
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<&'static Scenario>> {
    if names.is_empty() {
        return Ok(SCENARIOS.iter().collect());
    }
    let find = |name: &String| SCENARIOS.iter().find(|scenario| scenario.name == name);
    let there = SCENARIOS.map(|scenario| scenario.name).join(", ");
    let all = names.iter().map(|name| match find(name) {
        Some(scenario) => Ok(scenario),
        None => bail!("no scenario is called `{name}`; there are {there}"),
    });
    all.collect()
}

fn is_about_arrivals(scenario: &Scenario) -> bool {
    scenario.name.starts_with('a')
}

fn takes_part(client: &Client, scenario: &Scenario) -> bool {
    let own = matches!(client, Client::Ours(_, backend) if *backend == "sglang-oai");
    let peer = !matches!(client, Client::Ours(..) | Client::Ideal(_));
    client.can(scenario) && (own || peer || !is_about_arrivals(scenario))
}

/// Ours, and those peers that are there; a missing one is named.
fn clients(arguments: &Arguments) -> Result<Vec<Client>> {
    let ours = arguments.bed.ours()?;
    let mut clients = vec![Client::Ours(ours.clone(), "sglang-oai"), Client::Ours(ours, "sglang")];
    let mut add = |name: &str, client: Option<Client>| match client {
        Some(client) => clients.push(client),
        None => println!("{name} is not there; its rows are left out"),
    };
    let find = |given: &Option<PathBuf>, name: &str| given.clone().or_else(|| on_path(name));
    let python = arguments.sglang_python.clone();
    let python = python.or_else(|| on_path("python3").filter(|python| has_sglang(python)));
    add("vllm-rs", arguments.bed.vllm_rs());
    add("wrk", find(&arguments.wrk, "wrk").map(Client::Wrk));
    add("sglang's Rust client", python.clone().map(Client::SglangRust));
    add("sglang's Python client", python.map(Client::SglangPython));
    add("vllm's Python client", find(&arguments.vllm, "vllm").map(Client::VllmPython));
    add("an ideal client (--ideal)", arguments.ideal.clone().map(Client::Ideal));
    if !arguments.clients.is_empty() {
        clients.retain(|client| arguments.clients.iter().any(|name| name == client.name()));
    }
    Ok(clients)
}

fn has_sglang(python: &Path) -> bool {
    let find = "import importlib.util, sys; sys.exit(importlib.util.find_spec('sglang') is None)";
    shell::command(python).args(["-c", find]).status().is_ok_and(|status| status.success())
}

fn measure(
    arguments: &Arguments,
    rig: &Rig,
    client: &Client,
    scenario: &Scenario,
    round: u32,
    cell: &mut Cell,
) -> Result<()> {
    let place = arguments.bed.client_place()?;
    // Other rounds, other plans.
    let seed = (round + 1).to_string();
    let mut extra = vec!["--seed", &seed];
    if is_about_arrivals(scenario) {
        extra.push("--output-details");
    }
    let extra = if matches!(client, Client::Ours(..)) { extra.as_slice() } else { &[] };
    let run = arguments.bed.run(rig, client, scenario, place, extra, &mut |_, _| Ok(()))?;
    let figures = figures::figures(client, scenario, &run);
    let show =
        |figure: Figure| figures.get(&figure).map_or("-".to_owned(), |value| figure.show(*value));
    println!(
        "{} {}: {} requests/s, {} µs CPU a token",
        scenario.name,
        client.name(),
        show(Figure::RequestsPerSecond),
        show(Figure::CpuPerToken)
    );
    cell.arrivals.extend(Arrivals::of(scenario, &run));
    cell.runs.push(figures);
    Ok(())
}

fn table_lines(scenario: &str, clients: &[(&str, Figures)]) -> Vec<String> {
    let reference = clients.iter().find(|(name, _)| *name == "vllm-rs").map(|(_, figures)| figures);
    let goals = goals::judge(scenario, clients).join("; ");
    let rows = clients.iter().map(|(client, figures)| {
        let cells = Figure::COLUMNS.map(|figure| {
            let Some(value) = figures.get(&figure) else { return "-".to_owned() };
            let shown = figure.show(*value);
            match reference.and_then(|reference| reference.get(&figure)) {
                Some(theirs) if Figure::COMPARED.contains(&figure) => {
                    format!("{shown} ({:.2}×)", value / theirs)
                }
                _ => shown,
            }
        });
        let goals = if *client == rig::OURS { goals.as_str() } else { "" };
        format!("| {scenario} | {client} | {} | {goals} |", cells.join(" | "))
    });
    rows.collect()
}

fn print(rig: &Rig, rounds: u32, lines: &[String], arrival_lines: &[String]) {
    println!("\nServer: {}. Medians of {} round(s).", rig.name(), rounds.max(1));
    if !lines.is_empty() {
        let names = Figure::COLUMNS.map(Figure::name).join(" | ");
        println!("\n| scenario | client | {names} | goals |");
        println!("|---|---|{}---|", "---|".repeat(Figure::COLUMNS.len()));
        println!("{}", lines.join("\n"));
        println!(
            "\n× is to vllm-rs. Errors are the client's value less the server's. wrk parses no reply \
             and tells no TTFT; its rows are a floor for the cost. `ideal` spins; its errors are the \
             rig's. Launch includes about 5 ms in which core and priority are set."
        );
        if matches!(rig, Rig::Mock(_)) {
            println!(
                "The mock's p99 comes from a histogram that is 3 % coarse: 1.5 ms at 50 ms. Use \
                 sim-server for p99 errors."
            );
        }
    }
    if !arrival_lines.is_empty() {
        println!("\n{}\n{}", arrivals::HEAD, arrival_lines.join("\n"));
        println!(
            "\nKS is the distance of the gaps to the exponential of the rate asked for. `as sent` is \
             by the client's `start_times` (dispatch, right before the first byte is written), and \
             so is the plan's rate: the two differ by the lateness alone, for which ± has its largest."
        );
    }
}
