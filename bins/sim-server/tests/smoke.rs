//! The program as a process: it says where it listens, answers, and leaves when told to.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

fn start(arguments: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_sim-server"))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("a line");
    let address = line.trim().strip_prefix("sim-server listening on http://").expect("an address");
    let address = address.to_owned();
    (child, address)
}

fn fails(arguments: &[&str]) -> (Option<i32>, String) {
    let output: Output =
        Command::new(env!("CARGO_BIN_EXE_sim-server")).args(arguments).output().expect("runs");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn it_serves_until_it_is_told_to_stop_and_says_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let log = path("truth.jsonl");
    let (mut child, address) =
        start(&["--model", "m", "--itl-ms", "1", "--threads", "2", "--truth-log", &log]);

    let body = r#"{"model": "m", "prompt": "hello", "max_tokens": 3, "stream": true}"#;
    let mut socket = TcpStream::connect(&address).expect("connects");
    let head = "POST /v1/completions HTTP/1.1\r\nhost: sim\r\nconnection: close\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    socket.write_all(request.as_bytes()).expect("sends");
    let mut reply = String::new();
    socket.read_to_string(&mut reply).expect("a reply");
    assert!(reply.starts_with("HTTP/1.1 200 OK\r\n"), "{reply}");
    assert_eq!(reply.matches("data: {").count(), 3, "{reply}");
    assert!(reply.contains("data: [DONE]"), "{reply}");

    // The port is taken while it runs.
    let port = address.rsplit(':').next().expect("a port");
    let (code, message) = fails(&["--port", port]);
    assert_eq!(code, Some(4), "{message}");
    assert!(message.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{message}");

    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("is running");
    assert_eq!(child.wait().expect("ends").code(), Some(0));
    let truth = std::fs::read_to_string(&log).expect("a log");
    assert_eq!(truth.lines().count(), 1);
    assert!(
        truth.contains("\"output_tokens\":3") && truth.contains("\"aborted\":false"),
        "{truth}"
    );

    // Bad files are named, and so is the rule in them.
    let faults = path("faults.json");
    std::fs::write(&faults, r#"[{"action": {"no_done": {}}}, {"action": {"cut": 1}}]"#)
        .expect("writes");
    let (code, message) = fails(&["--faults", &faults]);
    assert_eq!(code, Some(3));
    assert!(message.contains("faults.json") && message.contains("fault rule 2"), "{message}");
    let (code, message) = fails(&["--engine", "huge"]);
    assert_eq!((code, message.contains("tiny, small, large")), (Some(3), true), "{message}");
    assert_eq!(fails(&["--engine", "small", "--itl-ms", "1"]).0, Some(2));
    assert_eq!(fails(&["--spec-accept", "0.5"]).0, Some(2));
}
