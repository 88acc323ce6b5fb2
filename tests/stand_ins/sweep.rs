//! Takes the place of `vllm` under a sweep: a server that is ready at once, and a client whose results
//! follow from its flags alone. What was asked of it stands in `calls.jsonl`, line by line, whichever tool
//! sweeps.

use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Error, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;
use std::time::Duration;

/// What it fails with when it is asked to.
const FAILED: u8 = 3;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            drop(writeln!(std::io::stderr(), "stand-in: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Does what it is called for; false when it was told to fail.
fn run(words: &[String]) -> Result<bool, Error> {
    log(&json!(words))?;
    if words.iter().any(|word| word == "--fail") {
        return Ok(false);
    }
    match words.first().map(String::as_str) {
        Some("serve") => serve(number(words, "--port").unwrap_or(8000.0) as u16),
        Some("bench") => bench(words).map(|()| true),
        _ => Ok(true),
    }
}

fn log(line: &Value) -> Result<(), Error> {
    let mut calls = OpenOptions::new().create(true).append(true).open("calls.jsonl")?;
    writeln!(calls, "{line}")
}

/// The last value of a flag.
fn value<'a>(words: &'a [String], flag: &str) -> Option<&'a str> {
    let at = words.iter().rposition(|word| word == flag)?;
    words.get(at + 1).map(String::as_str)
}

fn number(words: &[String], flag: &str) -> Option<f64> {
    value(words, flag)?.parse().ok()
}

/// Answers 200 to everything until it is killed.
fn serve(port: u16) -> Result<bool, Error> {
    let listener = loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            // The Python tool does not wait for the end of the server before.
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => pause(),
            bound => break bound?,
        }
    };
    loop {
        let (mut stream, _) = listener.accept()?;
        // To the end of the head; no call has a body.
        let head = BufReader::new(stream.try_clone()?).lines();
        let head: Vec<String> =
            head.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let asked = head.first().map_or("", String::as_str);
        if let Some(path) = asked.strip_prefix("POST ") {
            log(&json!([path.split(' ').next()]))?;
        }
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
        if stream.write_all(answer.as_bytes()).is_err() {
            // Who asked has gone.
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a process of its own, which has nothing else to do")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}

/// Writes the result that these flags always have.
fn bench(words: &[String]) -> Result<(), Error> {
    let cap = number(words, "--max-concurrency");
    let rate = number(words, "--request-rate").filter(|rate| rate.is_finite());
    let most = if cap == Some(1.0) { 1.0 } else { 7.4 };
    let throughput = rate.map_or(most, |rate| rate.min(most));
    let latency = cap.map_or(1500.5, |cap| 900.0 + 10.0 * cap);
    let result = json!({
        "date": "20261201-101112",
        "label": null,
        "num_prompts": number(words, "--num-prompts").unwrap_or(1000.0) as u64,
        "request_rate": rate.map_or(json!("inf"), |rate| json!(rate)),
        "max_concurrency": cap.map(|cap| cap as u64),
        "request_throughput": throughput,
        "mean_e2el_ms": latency,
        "output_throughput": 1e-7 * throughput,
        "note": "a \"quoted\" é, with a comma",
        "lengths": [1, 2.5, null],
    });
    let folder = value(words, "--result-dir").unwrap_or(".");
    let name = value(words, "--result-filename").unwrap_or("result.json");
    fs::create_dir_all(folder)?;
    fs::write(format!("{folder}/{name}"), result.to_string())
}
