//! The executable cases: scripted servers and the records that must come out.

use crate::support::{program, quiet_machine, root};
use std::process::Command;

/// Plays every case as written and once more with its bytes cut at random places.
#[test]
fn every_case_gives_its_record() {
    play(program(), &["--recut"]);
}

/// hyper's reader gives the same records as our own.
#[test]
fn every_case_gives_its_record_when_hyper_reads() {
    play(&format!("{} --http-reader hyper", program()), &[]);
}

#[expect(clippy::print_stderr, reason = "a test that cannot run here says so")]
fn play(bench: &str, options: &[&str]) {
    let Ok(version) = Command::new("python3").arg("--version").output() else {
        eprintln!("SKIPPED: the cases need python3 (standard library only), which is not on PATH");
        return;
    };
    assert!(version.status.success(), "python3 does not run");
    let folder = root().join("tests/cases");
    let _quiet = quiet_machine(); // times are compared within 20 ms
    let output = Command::new("python3")
        .arg(folder.join("run_cases.py"))
        .args(["--bench", bench])
        .args(options)
        .arg(folder.join("cases.md"))
        .env("HF_HUB_OFFLINE", "1")
        .output()
        .expect("python3 starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let trouble = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{trouble}");
    // A runner that finds no block would be content, too.
    let text = std::fs::read_to_string(folder.join("cases.md")).expect("cases.md");
    let blocks = text.lines().filter(|line| *line == "```script").count();
    let wanted = format!("{blocks} passed, 0 failed");
    assert_eq!(said.lines().next_back(), Some(wanted.as_str()), "{said}");
}
