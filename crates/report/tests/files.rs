//! Result files: folders, line ends, concurrent writers, names.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use servebench_report::{ReportError, RunInfo, append_line, auto_file_name, check_writable};
use std::fs;

#[test]
fn folders_are_made_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("no/such/dir/out.jsonl");
    check_writable(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"");
    append_line(&path, "{\"a\":1}").unwrap();
    append_line(&path, "{\"a\":2}\n").unwrap();
    check_writable(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"a\":2}\n");
}

#[test]
fn a_file_without_a_last_newline_gets_one_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    fs::write(&path, "{\"old\":0}").unwrap();
    append_line(&path, "{\"new\":1}").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "{\"old\":0}\n{\"new\":1}\n");
}

#[test]
fn what_cannot_be_written_is_known_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let error = check_writable(folder.path()).unwrap_err();
    assert!(matches!(error, ReportError::Open { .. }));
    assert!(error.to_string().contains(&folder.path().display().to_string()));

    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = check_writable(&file.join("below/out.jsonl")).unwrap_err();
    assert!(matches!(error, ReportError::Folder { .. }));
    assert!(error.to_string().contains("below"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let error = append_line("/dev/full".as_ref(), "{}").unwrap_err();
    assert!(matches!(error, ReportError::Write { .. }));
    assert!(error.to_string().contains("/dev/full"));
}

#[test]
fn concurrent_writers_never_mix_their_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.jsonl");
    std::thread::scope(|scope| {
        for writer in b'a'..=b'd' {
            let path = &path;
            scope.spawn(move || {
                let line = String::from_utf8(vec![writer; 200 * 1024]).unwrap();
                for _ in 0..8 {
                    append_line(path, &line).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 32);
    for line in lines {
        assert_eq!(line.len(), 200 * 1024);
        assert!(line.bytes().all(|byte| Some(byte) == line.bytes().next()));
    }
}

#[test]
fn names_follow_the_python_tool_and_are_one_safe_component() {
    let info = |backend: &str, dataset: &str| RunInfo {
        backend: backend.into(),
        dataset_name: dataset.into(),
        random_input_len: Some(1024),
        random_output_len: Some(128),
        ..RunInfo::default()
    };
    let name = |backend, dataset| auto_file_name(&info(backend, dataset), "1130", 16);
    assert_eq!(name("sglang", "random-ids"), "sglang_1130_16_1024_128.jsonl");
    assert_eq!(name("sglang", "sharegpt"), "sglang_1130_16_sharegpt.jsonl");
    assert_eq!(name("vllm-chat", "../my data:v1"), "vllm-chat_1130_16_..-my-data-v1.jsonl");
}
