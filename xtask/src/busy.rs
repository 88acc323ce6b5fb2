//! `cargo xtask bench busy`: what a client says that is kept from reading in time.
//!
//! The same load is measured by a client at rest, by one whose core another program takes again and
//! again, and by one that is stopped for a while; with the kernel's receive stamps, with the times
//! of its own reads, and by the nearest peer. The server's own account stands beside each.

use crate::rig::{self, Bed, Client, Load, Place, Report, Rig, Run, Scenario, Spread, scenario};
use crate::shell;
use anyhow::{Context, Result, bail, ensure};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A client that is kept from reading in time, with kernel stamps and without.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    bed: Bed,
    /// For how long a program on the client's core spins at a time, in milliseconds
    #[arg(long, default_value_t = 7, value_name = "MS")]
    spin_ms: u64,
    /// For how long it then rests, in milliseconds
    #[arg(long, default_value_t = 2, value_name = "MS")]
    rest_ms: u64,
    /// For how long the client is stopped in the third part, in milliseconds
    #[arg(long, default_value_t = 200, value_name = "MS")]
    stop_ms: u64,
    /// Parts to run (comma-separated)
    #[arg(long, value_delimiter = ',', default_value = "rest,busy,stopped")]
    parts: Vec<Trouble>,
}

/// Thirty-four streams at once on average: little work, so that delay is all that the client suffers.
const LOAD: Scenario = scenario("busy", Load::Open(50.0), 300, 64, (50, 10));

/// Seconds from launch to the stop: the middle of the run.
const STOP_AT: f64 = 3.5;

/// What keeps the client from reading.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq)]
enum Trouble {
    /// Nothing does
    Rest,
    /// A program spins on its core
    Busy,
    /// It is stopped for a while
    Stopped,
}

/// Who measures, and the flags that make it do so.
type Measurer = (&'static str, Client, &'static [&'static str]);

/// Measures the load with each client under each trouble and prints two tables for each.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if let Some(missing) = rig::missing() {
        bail!("{missing} is needed to give each process a core and a priority (Linux)");
    }
    let rig = arguments.bed.rig()?;
    let ours = Client::Ours(arguments.bed.ours()?, "sglang-oai");
    let mut measurers: Vec<Measurer> = vec![
        ("ours, kernel stamps", ours.clone(), &["--receive-stamps", "kernel"]),
        ("ours, user stamps", ours, &["--receive-stamps", "user"]),
    ];
    match arguments.bed.vllm_rs() {
        Some(client) => measurers.push(("vllm-rs", client, &[])),
        None => println!("vllm-rs is not there; its rows are left out"),
    }
    let Load::Open(rate) = LOAD.load else { bail!("the load is an open loop") };
    println!(
        "{} requests at {rate} a second, {} tokens each; the server's TTFT is {} ms, its ITL {} ms.",
        LOAD.requests, LOAD.output_tokens, LOAD.ttft_ms, LOAD.itl_ms
    );
    for &trouble in &arguments.parts {
        let title = match trouble {
            Trouble::Rest => "At rest".to_owned(),
            Trouble::Busy => format!(
                "Busy: a program takes its core for {} ms, again and again after {} ms",
                arguments.spin_ms, arguments.rest_ms
            ),
            Trouble::Stopped => format!("Stopped for {} ms in the middle", arguments.stop_ms),
        };
        let mut rows = Vec::new();
        for (name, client, flags) in &measurers {
            rows.push((*name, measure(arguments, &rig, client, flags, trouble)?));
        }
        print(&title, &rows);
    }
    Ok(())
}

fn measure(
    arguments: &Arguments,
    rig: &Rig,
    client: &Client,
    flags: &[&str],
    trouble: Trouble,
) -> Result<Run> {
    let bed = &arguments.bed;
    let mut place = bed.client_place()?;
    let spinner = (trouble == Trouble::Busy).then(|| Spinner::start(arguments, place));
    let _spinner = spinner.transpose()?;
    if trouble == Trouble::Busy && place.nice == 0 {
        place.nice = 10; // the other one goes first, whatever its scheduler
    }
    let mut to_come = trouble == Trouble::Stopped;
    let mut during = |pid: u32, seconds: f64| {
        if to_come && seconds >= STOP_AT {
            to_come = false;
            stop_for(pid, Duration::from_millis(arguments.stop_ms))?;
        }
        Ok(())
    };
    let run = bed.run(rig, client, &LOAD, place, flags, &mut during)?;
    ensure!(!to_come, "the run was over before the client could be stopped");
    Ok(run)
}

/// Spins and rests in turn until it is killed.
#[derive(clap::Args, Debug)]
pub(crate) struct Spin {
    spin_ms: u64,
    rest_ms: u64,
}

/// The program that keeps the client from reading: this one, told to spin.
pub(crate) fn spin(times: &Spin) -> Result<()> {
    loop {
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(times.spin_ms) {}
        std::thread::sleep(Duration::from_millis(times.rest_ms));
    }
}

/// Such a program while it runs.
#[derive(Debug)]
struct Spinner(Child);

impl Spinner {
    fn start(arguments: &Arguments, place: Place) -> Result<Self> {
        // Programs of one kind share a core in slices of 3 ms; one with a real-time priority takes it
        // for as long as it likes. Only some users may start one.
        let favoured = shell::succeeds(shell::command("chrt").args(["--fifo", "1", "true"]));
        let scheduler = if favoured { ["chrt", "--fifo", "1"] } else { ["nice", "-n", "0"] };
        let mut command = place.command(Path::new(scheduler[0]));
        command.args(&scheduler[1..]).arg(std::env::current_exe()?);
        command.arg("spin").args([arguments.spin_ms, arguments.rest_ms].map(|ms| ms.to_string()));
        let child = command.stdin(Stdio::null()).spawn();
        Ok(Self(child.context("cannot start the program that spins")?))
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("process {} may still spin: {error}", self.0.id());
        }
    }
}

fn stop_for(pid: u32, time: Duration) -> Result<()> {
    let signal = |name: &str| shell::read(shell::command("kill").args([name, &pid.to_string()]));
    signal("-STOP")?;
    std::thread::sleep(time);
    signal("-CONT")?;
    Ok(())
}

fn print(title: &str, rows: &[(&str, Run)]) {
    println!("\n### {title}\n");
    println!(
        "| client | TTFT mean / p50 / p99 ms | server's | ITL mean / p50 / p99 ms | server's | \
         read lag p50 / p99 / max ms |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, Run { report, truth, .. }) in rows {
        let three = |keys: [&str; 3]| numbers(report, &keys);
        println!(
            "| {name} | {} | {} | {} | {} | {} |",
            three(["mean_ttft_ms", "median_ttft_ms", "p99_ttft_ms"]),
            spread(truth.ttft),
            three(["mean_itl_ms", "median_itl_ms", "p99_itl_ms"]),
            spread(truth.itl),
            three(["read_lag_p50_ms", "read_lag_p99_ms", "read_lag_max_ms"]),
        );
    }
    println!();
    println!(
        "| client | exact TTFT / ITL % | tokens with bounds | TTFT mean, p99 within ms | \
         ITL mean, p99 within ms | verdict |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, Run { report, .. }) in rows {
        let percent = |key| show(report.number(key).map(|share| share * 100.0));
        let within = |metric: &str| {
            let bound = |statistic: &str, end: &str| {
                show(report.number(&format!("{statistic}_{metric}_{end}_ms")))
            };
            let range =
                |statistic| format!("{}–{}", bound(statistic, "low"), bound(statistic, "high"));
            format!("{}, {}", range("mean"), range("p99"))
        };
        let bounded = report.number("bounded_chunks").map_or("-".to_owned(), |n| format!("{n:.0}"));
        println!(
            "| {name} | {} / {} | {bounded} | {} | {} | {} |",
            percent("exact_share_ttft"),
            percent("exact_share_itl"),
            within("ttft"),
            within("itl"),
            report.text("verdict").unwrap_or("-"),
        );
    }
    println!();
    for (name, Run { report, .. }) in rows {
        // The weightiest comes first.
        if let Some(evidence) = report.texts("verdict_evidence").first() {
            println!("- {name}: {evidence}");
        }
    }
}

fn numbers(report: &Report, keys: &[&str]) -> String {
    keys.iter().map(|key| show(report.number(key))).collect::<Vec<_>>().join(" / ")
}

fn spread(spread: Spread) -> String {
    [spread.mean, spread.p50, spread.p99].map(show).join(" / ")
}

fn show(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.2}"))
}
