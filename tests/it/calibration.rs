//! The client measured on a server whose times are known.

use crate::support::{Folder, busy_machine};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const SMALL: &[&str] = &[
    "--simulate",
    "--num-prompts",
    "8",
    "--random-input-len",
    "16",
    "--random-output-len",
    "8",
    "--disable-tqdm",
    "--output-file",
    "out.jsonl",
];

#[test]
fn a_calibration_compares_every_request_with_the_servers_truth() {
    let folder = Folder::new();
    let outcome = folder.run(&[SMALL, &["--calibrate"]].concat()).expect_code(0);
    assert!(outcome.stderr.contains("calibrated: TTFT off by "), "{}", outcome.said());
    let line = folder.results("out.jsonl").remove(0);
    let calibration = &line["calibration"];
    // All are due at once: the whole plan, once.
    assert_eq!((&calibration["requests"], &calibration["in_flight"]), (&8.into(), &8.into()));
    let number = |key: &str| calibration[key].as_f64().expect(key);
    // One, unless the machine is so busy that the warm-up's came together.
    assert!((1.0..=4.0).contains(&number("tokens_per_event")), "{calibration:#}");
    // The server answers with the times of the warm-up, and nobody can be faster than it.
    assert!(number("server_ttft_ms") > 0.0 && number("server_itl_ms") > 0.0, "{calibration:#}");
    assert!(number("ttft_bias_ms") > -0.1, "{calibration:#}");
    assert!(number("ttft_error_p99_ms") >= number("ttft_bias_ms"), "{calibration:#}");
    assert!(number("itl_error_p99_ms") >= number("itl_bias_ms").abs(), "{calibration:#}");
    assert!(number("cpu_per_token_us") > 0.0, "{calibration:#}");
    assert!(number("saturation_tokens_per_s") > 0.0, "{calibration:#}");
    let evidence = line["verdict_evidence"].to_string();
    assert!(evidence.contains("on a server with known times"), "{evidence}");
    assert!(evidence.contains("calibrated to take"), "{evidence}");
}

#[test]
fn a_light_load_is_not_calibrated_unasked() {
    let folder = Folder::new();
    let outcome = folder.run(SMALL).expect_code(0);
    assert!(!outcome.stderr.contains("calibrat"), "{}", outcome.said());
    assert!(folder.results("out.jsonl")[0]["calibration"].is_null());
    let both = folder.run(&["--simulate", "--calibrate", "--no-calibrate"]).expect_code(2);
    assert!(both.stderr.contains("--no-calibrate"), "{}", both.said());
}

#[test]
fn the_built_in_server_ends_with_its_input() {
    let _busy = busy_machine();
    let mut command = Folder::new().command(&["__serve-for-calibration"]);
    let mut child = command
        .current_dir(crate::support::root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    input
        .write_all(b"{\"timing\": {\"canned\": {\"ttft_ms\": 5, \"itl_ms\": 1}}}\n")
        .expect("a line");
    let mut address = String::new();
    let output = child.stdout.take().expect("a pipe");
    BufReader::new(output).read_line(&mut address).expect("a line");
    std::net::TcpStream::connect(address.trim()).expect("it listens");
    drop(input);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));

    let folder = Folder::new();
    let refused = folder.run(&["__serve-for-calibration"]).expect_code(3);
    assert!(!refused.said().contains("panicked"), "{}", refused.said());
}
