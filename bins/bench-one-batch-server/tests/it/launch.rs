//! A server that the command starts and stops. The test program itself is that server.

use super::{run, tokenizer};
use rustix::process::{Pid, test_kill_process};
use servebench_sim::{Sim, SimConfig};
use std::net::TcpListener;

/// Where this program is to serve, when it was started for that.
const SERVE_ON: &str = "SERVEBENCH_TEST_SERVE_ON";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "this process is told so by the command that started it"
)]
fn serves_when_started_for_it() {
    let Ok(address) = std::env::var(SERVE_ON) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("one");
    runtime.block_on(async {
        let address = address.parse().expect("an address");
        Sim::new(SimConfig::default()).serve(Sim::listen(address, false).expect("a port")).await;
    });
}

/// A port that nobody has.
fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it").port().to_string()
}

#[test]
fn a_server_is_started_and_stopped_with_its_children() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, pid) = (folder.path().join("r.jsonl"), folder.path().join("pid"));
    let (name, port) = (file.to_string_lossy().into_owned(), free_port());
    let this = std::env::current_exe().expect("this program");
    let command = format!(
        "sleep 600 & echo $! >'{}'; {SERVE_ON}=127.0.0.1:{port} exec '{}' --exact \
         launch::serves_when_started_for_it",
        pid.display(),
        this.display()
    );
    let words = ["--launch", &command, "--port", &port, "--local-tokenizer-path", tokenizer()];
    let more = ["--dataset-name", "random-ids", "--input-len", "8", "--output-len", "2"];
    let ran = run(&[&words[..], &more, &["--skip-warmup", "--result-filename", &name]].concat());
    let said = ran.err.clone();
    ran.done();
    assert!(said.contains("is ready after") && said.ends_with("stopping the server\n"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("results").lines().count(), 1);
    let child = std::fs::read_to_string(&pid).expect("a child").trim().parse().expect("its number");
    let child = Pid::from_raw(child).expect("its number");
    // It may be there for the moment until its new parent has looked at it.
    let gone = (0..200).any(|_| {
        std::thread::yield_now();
        test_kill_process(child).is_err() || is_dead(child)
    });
    assert!(gone, "the server's child is still there");
    assert!(TcpListener::bind(format!("127.0.0.1:{port}")).is_ok(), "the server is still there");
}

/// Whether a process is there in name only.
fn is_dead(process: Pid) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    status.is_ok_and(|status| status.rsplit(')').next().is_some_and(|rest| rest.starts_with(" Z")))
}

#[test]
fn a_command_that_ends_is_a_failure_at_once() {
    let port = free_port();
    let words = ["--launch", "exit 3", "--port", &port, "--result-filename", ""];
    let text = run(&words).failed(4);
    assert!(text.contains("--launch: the command ended") && text.contains('3'), "{text}");
}

#[test]
fn another_server_at_that_address_is_not_taken_for_it() {
    let sim = Sim::new(SimConfig::default()).spawn_in_thread().expect("a server");
    let url = sim.url();
    let text = run(&["--launch", "true", "--base-url", &url, "--result-filename", ""]).failed(2);
    assert!(text.contains("answers at") && text.contains("already"), "{text}");
}
