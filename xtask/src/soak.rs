//! `cargo xtask soak`: a long run against a server that keeps failing, and what has become of each request.

use crate::rig::{Usage, watch};
use crate::server::{Server, free_port, get};
use crate::shell;
use crate::smoke::{empty_folder, result_line};
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Which binaries, and how many requests.
#[derive(clap::Args, Debug)]
pub(crate) struct Arguments {
    /// Requests to send
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    requests: u64,
    /// Requests under way at once
    #[arg(long, default_value_t = 512, value_name = "N")]
    concurrency: u64,
    /// Folder of bench-serving and sim-server [default: their release builds, made anew]
    #[arg(long, value_name = "FOLDER")]
    binaries: Option<PathBuf>,
}

/// What 1 % of the requests meet each, and what that is to their records. (A connection that is closed while
/// it is idle is not among them: whether the server sees the request that comes then is chance.)
const FAULTS: [(&str, &str); 13] = [
    (r#"{"delay": {"ms": 20}}"#, "ok"),
    (r#"{"status": {"code": 503, "body": "busy"}}"#, "status"),
    (r#"{"status": {"code": 429, "headers": {"Retry-After": "1"}}}"#, "status"),
    (r#"{"hang_up": {}}"#, "sent once more"),
    (r#"{"hang_up": {"reset": true}}"#, "sent once more"),
    (r#"{"silence": {}}"#, "timeout"),
    (r#"{"cut": {"after_tokens": 2}}"#, "truncated"),
    (r#"{"reset": {"after_tokens": 2}}"#, "reset"),
    (r#"{"malformed": {"at_token": 2}}"#, "protocol"),
    (r#"{"stall": {"at_token": 2}}"#, "timeout"),
    (r#"{"stall": {"at_token": 2, "ms": 20}}"#, "ok"),
    (r#"{"error": {"at_token": 2}}"#, "server"),
    (r#"{"hold_open": {"ms": 20}}"#, "ok"),
];

/// Most memory that a request may take, in bytes.
const PER_REQUEST: f64 = 1024.0;
/// Requests of the run that tells what the client takes without any.
const FEW: u64 = 10_000;
/// Longest time for a run.
const LIMIT: Duration = Duration::from_hours(1);

/// Runs the soak and checks what is left.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let binaries = match &arguments.binaries {
        Some(folder) => folder.clone(),
        None => shell::release_binaries(&["bench-serving", "sim-server"])?,
    };
    let folder = empty_folder("soak")?;
    let rules: Vec<Value> = FAULTS
        .iter()
        .enumerate()
        .map(|(place, (action, _))| {
            let action: Value = serde_json::from_str(action)?;
            Ok(json!({"when": {"every": 100, "offset": 7 * place}, "action": action}))
        })
        .collect::<Result<_>>()?;
    fs::write(folder.join("faults.json"), json!(rules).to_string())?;
    let few = soak(arguments, &binaries, &folder, FEW.min(arguments.requests))?;
    let many = soak(arguments, &binaries, &folder, arguments.requests)?;
    let more = many.usage.peak_memory.saturating_sub(few.usage.peak_memory) as f64;
    let per_request = more / arguments.requests.saturating_sub(FEW).max(1) as f64;
    println!(
        "memory: {:.1} MB at its peak with {} requests, {:.1} MB with {}: {per_request:.0} bytes a request",
        few.usage.peak_memory as f64 / 1e6,
        FEW.min(arguments.requests),
        many.usage.peak_memory as f64 / 1e6,
        arguments.requests
    );
    ensure!(per_request <= PER_REQUEST, "a request takes {per_request:.0} bytes");
    Ok(())
}

struct Soaked {
    usage: Usage,
}

/// One run of so many requests, every one of which is accounted for.
fn soak(arguments: &Arguments, binaries: &Path, folder: &Path, requests: u64) -> Result<Soaked> {
    let port = free_port()?;
    let mut command = shell::command(binaries.join("sim-server"));
    command.args(["--port", &port.to_string(), "--faults"]).arg(folder.join("faults.json"));
    command.stdout(Stdio::null());
    let mut server = Server::start(&mut command, port)?;
    server.wait_ready("/v1/models", Duration::from_secs(20))?;

    let own = folder.join(requests.to_string());
    fs::create_dir_all(&own)?;
    let mut client = shell::command(binaries.join("bench-serving"));
    client.current_dir(&own).stdout(Stdio::null()).args(["--base-url", &server.base_url()]);
    client.args("--model sim --dataset-name random-ids --disable-tqdm --seed 1".split(' '));
    client.args("--random-input-len 4 --random-output-len 4 --random-range-ratio 1".split(' '));
    client.args("--warmup-requests 0 --no-calibrate --idle-timeout 3".split(' '));
    client.args(["--num-prompts", &requests.to_string()]);
    client.args(["--max-concurrency", &arguments.concurrency.to_string()]);
    client.arg("--tokenizer").arg(shell::root().join("tests/cases/tokenizers/bytes"));
    let usage = watch(&mut client, LIMIT, &mut |_, _| Ok(()))?;
    ensure!(usage.status.success(), "the client ended with {}", usage.status);
    let line = result_line(&own)?;
    let stats = settled(port)?;
    let took = usage.ended - usage.launched;
    println!("{requests} requests in {took:.1} s: failures {}, server {stats}", line["failures"]);
    account(requests, &line, &stats)?;
    Ok(Soaked { usage })
}

/// What the server counted, once it has noticed that nobody is left.
fn settled(port: u16) -> Result<Value> {
    for _ in 0..200 {
        let stats: Value = serde_json::from_str(&get(port, "/sim/stats")?)?;
        if stats["in_flight"] == 0 {
            return Ok(stats);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    bail!("the server has requests in flight though the client has left")
}

/// Every request is in one place, and the server says the same.
fn account(requests: u64, line: &Value, stats: &Value) -> Result<()> {
    let count = |from: &Value, key: &str| {
        from[key].as_u64().with_context(|| format!("`{key}` is no count: {}", from[key]))
    };
    let failures: Map<String, Value> =
        line["failures"].as_object().context("`failures` is no object")?.clone();
    let failed_as = |kind: &str| failures.get(kind).and_then(Value::as_u64).unwrap_or(0);
    let (completed, failed) = (count(line, "completed")?, count(line, "failed")?);
    let kinds: u64 = failures.values().filter_map(Value::as_u64).sum();
    ensure!(count(line, "unsent")? == 0, "requests were not sent");
    ensure!(completed + failed == requests, "{completed} + {failed} is not {requests}");
    ensure!(kinds == failed, "the kinds are {kinds} together, not {failed}");
    for (action, kind) in FAULTS {
        if kind != "ok" && kind != "sent once more" {
            ensure!(failed_as(kind) > 0, "{action} was never told as {kind}");
        }
    }
    let again = count(line, "reconnects")?;
    let (taken, refused) = (count(stats, "requests")?, count(stats, "refused")?);
    ensure!(again > 0, "no request was sent once more");
    ensure!(
        taken + refused == requests + again,
        "the server had {taken} + {refused} requests, the client sent {requests} + {again}"
    );
    // A reply with a frame that is no JSON was sent to its end all the same.
    let finished = count(stats, "finished")?;
    ensure!(
        finished == completed + failed_as("protocol"),
        "the server finished {finished} replies, the client has {completed} + {}",
        failed_as("protocol")
    );
    let cut = count(stats, "aborted")?;
    ensure!(taken == finished + cut, "{finished} + {cut} is not {taken}");
    Ok(())
}
