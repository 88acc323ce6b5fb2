//! What goes over the wire.

use crate::peer::Peer;
use crate::support::Folder;
use serde_json::{Value, json};

/// Runs the program against an SGLang server and returns the one body of `/start_profile`.
#[track_caller]
fn started(words: &[&str]) -> Value {
    let (peer, folder) = (Peer::sglang(), Folder::new());
    let url = peer.url();
    let (command, rest) = match words.split_first() {
        Some((first, rest)) if *first == "start" => (vec!["start"], rest),
        _ => (vec![], words),
    };
    let words = [&command[..], &["--url", &url], rest].concat();
    folder.run(&words).code(0);
    let calls = peer.calls("/start_profile");
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].method, "POST");
    calls[0].json()
}

/// The body without its folder, which must be below `base` and named after the time.
#[track_caller]
fn without_folder(mut body: Value, base: &str) -> Value {
    let folder = body["output_dir"].take();
    let name = folder.as_str().and_then(|folder| folder.strip_prefix(base)).unwrap_or_else(|| {
        panic!("{folder} is not below {base}");
    });
    let time: f64 = name.trim_start_matches('/').parse().expect("a time");
    assert!(time > 1.7e9 && name.contains('.'), "{name}");
    body
}

#[test]
fn the_main_command_sends_the_python_tools_defaults() {
    let folder = Folder::new();
    let base = folder.path("traces").to_string_lossy().into_owned();
    let body = started(&["--output-dir", &base, "--wait", "0"]);
    let want = json!({"output_dir": null, "num_steps": 5, "activities": ["CPU", "GPU"],
        "profile_by_stage": false, "merge_profiles": false, "profile_prefix": null,
        "profile_stages": null});
    assert_eq!(without_folder(body, &base), want);
}

#[test]
fn every_flag_of_the_python_tool_reaches_its_field() {
    let folder = Folder::new();
    let base = folder.path("traces").to_string_lossy().into_owned();
    let body = started(&[
        "--output-dir",
        &base,
        "--num-steps",
        "7",
        "--profile-by-stage",
        "--profile-prefix",
        "p",
        "--no-cpu",
        "--mem",
        "--rpd",
        "--merge-profiles",
        "--wait",
        "0",
    ]);
    let want = json!({"output_dir": null, "num_steps": 7, "activities": ["GPU", "MEM", "RPD"],
        "profile_by_stage": true, "merge_profiles": true, "profile_prefix": "p",
        "profile_stages": null});
    assert_eq!(without_folder(body, &base), want);

    // Of a pair the last counts; prefixes are enough.
    let body = started(&[
        "--output-d",
        &base,
        "--merge-profiles",
        "--no-merge",
        "--no-gpu",
        "--gpu",
        "--num",
        "2",
        "--wait",
        "0",
    ]);
    assert_eq!(
        (&body["merge_profiles"], &body["activities"], &body["num_steps"]),
        (&json!(false), &json!(["CPU", "GPU"]), &json!(2))
    );
}

#[test]
fn start_sends_what_was_given_and_nothing_else() {
    let nothing = json!({"activities": null, "num_steps": null, "profile_by_stage": false,
        "profile_stages": null, "output_dir": null, "profile_prefix": null});
    assert_eq!(started(&["start"]), nothing);

    let body = started(&[
        "start",
        "--output-dir",
        "/x",
        "--start-step",
        "5",
        "--num-steps",
        "10",
        "--activities",
        "cpu",
        "CUDA_PROFILER",
        "--profile-by-stage",
        "--profile-stages",
        "prefill",
        "decode",
        "--no-with-stack",
        "--record-shapes",
        "--profile-id",
        "7",
        "--merge-profiles",
        "--profile-prefix",
        "p",
        "--detailed-annotations",
    ]);
    let want = json!({"output_dir": "/x", "start_step": 5, "num_steps": 10,
        "activities": ["CPU", "CUDA_PROFILER"], "profile_by_stage": true,
        "profile_stages": ["prefill", "decode"], "with_stack": false, "record_shapes": true,
        "profile_id": "7", "merge_profiles": true, "profile_prefix": "p",
        "detailed_annotations": true});
    assert_eq!(body, want);

    // The server would not survive this one without an end.
    assert_eq!(started(&["start", "--profile-by-stage"])["num_steps"], 5);
}

#[test]
fn every_call_carries_the_key() {
    let (peer, folder) = (Peer::sglang(), Folder::new());
    let url = peer.url();
    for command in ["start", "stop", "flush-cache", "server-info"] {
        let mut run = folder.command(&[command, "--url", &url]);
        let output = run.env("OPENAI_API_KEY", "k").output().expect("a run");
        assert!(output.status.success(), "{output:?}");
    }
    folder.run(&["stop", "--url", &url, "--header", "Authorization=mine"]).code(0);
    let key = |call: &crate::peer::Call| call.authorization.clone().expect("a key");
    let keys = |path: &str| peer.calls(path).iter().map(key).collect::<Vec<_>>();
    assert_eq!(keys("/start_profile"), ["Bearer k"]);
    assert_eq!(keys("/stop_profile"), ["Bearer k", "mine"]);
    assert_eq!(keys("/flush_cache"), ["Bearer k"]);
    let paths: Vec<_> = peer.calls("/flush_cache").into_iter().map(|call| call.path).collect();
    assert_eq!(paths, ["/flush_cache?timeout=60.0"]);
}

#[test]
fn server_info_is_json_without_secrets() {
    let (peer, folder) = (Peer::sglang(), Folder::new());
    let url = peer.url();
    let said = folder.run(&["server-info", "--url", &url]).code(0).out;
    let info: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(info, json!({"model_path": "m", "api_key": "***", "tp_size": 1}));

    let other = Peer::sglang();
    let said = folder.run(&["server-info", "--url", &url, &other.url()]).code(0).out;
    let info: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(info[&url]["model_path"], "m");
    assert_eq!(info[other.url()]["model_path"], "m");
}

#[test]
fn vllm_is_known_by_its_version_and_gets_its_own_calls() {
    let peer = Peer::start(|path| match path {
        "/version" => (200, r#"{"version": "0.21.0"}"#.into()),
        "/start_profile" | "/stop_profile" | "/reset_prefix_cache" => (200, String::new()),
        _ => (404, r#"{"detail": "Not Found"}"#.into()),
    });
    let (folder, url) = (Folder::new(), peer.url());
    folder.run(&["--url", &url, "--duration", "0.01"]).code(0).says(&["profiler stopped"]);
    let start = &peer.calls("/start_profile")[0];
    assert_eq!((start.method.as_str(), start.body.as_slice()), ("POST", &b""[..]));
    assert_eq!(peer.calls("/stop_profile").len(), 1);
    folder.run(&["flush-cache", "--url", &url]).code(0);
    assert_eq!(peer.calls("/reset_prefix_cache").len(), 1);
    folder.run(&["--url", &url, "--num-steps", "3"]).code(2).says(&["--num-steps", "vLLM"]);
    folder.run(&["start", "--url", &url, "--mem"]).code(2).says(&["--mem", "--profiler-config"]);
    folder.run(&["server-info", "--url", &url]).code(4).says(&["VLLM_SERVER_DEV_MODE"]);
    assert_eq!(peer.calls("/start_profile").len(), 1);
}
