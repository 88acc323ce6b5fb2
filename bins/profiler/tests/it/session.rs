//! Profiles from their start to their end, whatever the end is.

use crate::peer::Peer;
use crate::support::{Folder, outcome};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader};

#[test]
fn a_simulated_profile_leaves_its_traces_and_lists_them() {
    let folder = Folder::new();
    let ended = folder.run(&["--simulate", "--output-dir", "traces", "--num-steps", "3"]).code(0);
    let mut lines = ended.out.lines();
    let dump = lines.next().and_then(|line| line.strip_prefix("Dump profiling traces to "));
    let traces = std::path::PathBuf::from(dump.expect("the folder is named first"));
    assert!(traces.starts_with(folder.path("traces")), "{traces:?}");
    let file = lines.next().and_then(|line| line.split("  ").next()).expect("a trace");
    assert!(file.ends_with("-TP-0.trace.json.gz"), "{file}");
    assert!(std::fs::metadata(file).expect("it is there").len() > 50);
    assert_eq!(lines.next(), None);
    let args = std::fs::read_to_string(traces.join("server_args.json")).expect("server_args.json");
    let args: Value = serde_json::from_str(&args).expect("JSON");
    assert_eq!(args["simulated"], true);
    ended.says(&["ui.perfetto.dev", "chrome://tracing"]);
}

#[test]
fn stages_and_merged_traces_are_waited_for() {
    let folder = Folder::new();
    let words = ["--simulate", "--output-dir", "t", "--profile-by-stage", "--merge-profiles"];
    let out = folder.run(&words).code(0).out;
    for end in ["-TP-0-EXTEND.trace.json.gz", "-TP-0-DECODE.trace.json.gz", "/merged-"] {
        assert!(out.contains(end), "{out}");
    }
}

#[test]
fn each_command_can_be_tried_without_a_server() {
    let folder = Folder::new();
    folder.run(&["start", "--simulate", "--num-steps", "2"]).code(0).says(&["profiler started"]);
    folder.run(&["stop", "--simulate"]).code(0).says(&["profiler stopped"]);
    folder.run(&["flush-cache", "--simulate"]).code(0).says(&["cache flushed"]);
    folder.run(&["server-info", "--simulate"]).code(0).says(&["internal_states"]);
    let words = ["--simulate", "--output-dir", "t", "--duration", "0.2"];
    folder.run(&words).code(0).says(&["profiler stopped", "-TP-0.trace.json.gz"]);
}

/// What the server wrote by itself is no reason to stop it; an interrupt is.
#[test]
fn an_interrupt_stops_the_profiler() {
    let (peer, folder) = (Peer::sglang(), Folder::new());
    let url = peer.url();
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut child = folder.start(&["--url", &url, "--output-dir", "t", "--wait", "60"]);
        let mut said = BufReader::new(child.stderr.take().expect("its talk"));
        let mut line = String::new();
        while !line.contains("profiler started") {
            line.clear();
            assert!(said.read_line(&mut line).expect("talk") > 0, "it never started");
        }
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("it runs");
        assert_eq!(outcome(child).code, Some(code));
    }
    assert_eq!(peer.calls("/stop_profile").len(), 2);
}

#[test]
fn a_profile_without_work_is_stopped_when_the_wait_is_over() {
    let (peer, folder) = (Peer::sglang(), Folder::new());
    let words = ["--url", &peer.url(), "--output-dir", "t", "--wait", "1"];
    folder.run(&words).code(0).says(&["profiler stopped", "no trace file is to be seen"]);
    assert_eq!(peer.calls("/stop_profile").len(), 1);
}

#[test]
fn a_server_that_has_ended_its_profile_already_is_no_failure() {
    let peer = Peer::start(|path| match path {
        "/server_info" => (200, "{}".into()),
        "/start_profile" => (200, String::new()),
        _ => (500, "Internal Server Error".into()),
    });
    let folder = Folder::new();
    let words = ["--url", &peer.url(), "--output-dir", "t", "--wait", "1"];
    folder.run(&words).code(0).says(&["ended by itself"]);
    // Without a number of steps nothing can have ended.
    let words = ["--url", &peer.url(), "--output-dir", "t", "--duration", "0.01"];
    folder.run(&words).code(4).says(&["/stop_profile", "500", "profiler stop"]);
}

#[test]
fn workers_are_started_together_or_not_at_all() {
    let (one, other, folder) = (Peer::sglang(), Peer::sglang(), Folder::new());
    let (first, second) = (one.url(), other.url());
    let words = ["--profile-decode-url", &first, &second, "--output-dir", "t", "--wait", "0"];
    folder.run(&words).code(0).says(&["Decode-0", "Decode-1"]);
    let folders = [&one, &other].map(|peer| {
        let body = peer.calls("/start_profile")[0].json();
        body["output_dir"].as_str().expect("a folder").to_owned()
    });
    assert!(folders[0].ends_with("/Decode-0") && folders[1].ends_with("/Decode-1"), "{folders:?}");

    let broken = Peer::start(|path| match path {
        "/server_info" => (200, "{}".into()),
        _ => (500, "busy".into()),
    });
    let words = ["--profile-prefill-url", &first, &broken.url(), "--output-dir", "t"];
    folder.run(&words).code(4).says(&["Prefill-1", "busy", "profiler stop"]);
    assert_eq!(one.calls("/stop_profile").len(), 1, "the one that did start");
}

#[test]
fn failures_name_what_was_called() {
    let folder = Folder::new();
    let nothing = Peer::start(|_| (404, "not here".into()));
    let url = nothing.url();
    folder.run(&["--url", &url]).code(4).says(&["/start_profile", "404", "not here"]);
    for command in ["start", "stop", "flush-cache", "server-info"] {
        folder.run(&[command, "--url", &url]).code(4).says(&["404", "not here"]);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", closed.local_addr().expect("its address"));
    drop(closed);
    folder.run(&["--url", &address]).code(4).says(&[&address, "cannot connect"]);
    let locked = Peer::start(|_| (401, "key?".into()));
    folder.run(&["stop", "--url", &locked.url()]).code(4).says(&["401", "key?"]);

    folder.run(&["--url", "ftp://x"]).code(2).says(&["--url", "ftp"]);
    folder.run(&["--num-steps", "0"]).code(2).says(&["--num-steps"]);
    folder.run(&["--num-steps", "-1"]).code(2).says(&["--num-steps"]);
    folder.run(&["--no-cpu", "--no-gpu"]).code(2).says(&["nothing to profile"]);
    folder.run(&["--simulate", "--url", &url]).code(2).says(&["--simulate"]);
    folder.run(&["--url", &url, "start"]).code(4);
    folder.run(&["--profile-stages", "decode"]).code(2).says(&["--profile-by-stage"]);
}
