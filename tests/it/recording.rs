//! Recordings: the report once more from the bytes that were received, what they show, what they hide.

use crate::support::{Folder, busy_machine, root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value};
use servebench_backends::BackendKind;
use servebench_testkit::{BodyEnd, Script, cases};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

const SMALL: &str = "--num-prompts 10 --random-input-len 16 --random-output-len 8 --random-range-ratio 1.0 \
                     --disable-tqdm --no-calibrate --output-details --output-file out.jsonl --record run.rec";

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// Runs with a recording, then replays it: what is printed must be the same, and every key of the result.
#[track_caller]
fn assert_replayed(folder: &Folder, run: &str, code: i32) -> Value {
    let ran = folder.run(&[words(SMALL), words(run)].concat()).expect_code(code);
    let again = folder.run(&words("replay run.rec --output-file again.jsonl")).expect_code(code);
    assert_eq!(ran.stdout, again.stdout, "{run}");
    let line = folder.results("out.jsonl").remove(0);
    let replayed = folder.results("again.jsonl").remove(0);
    assert_same(&line, &replayed, &[], run);
    line
}

#[track_caller]
fn assert_same(run: &Value, again: &Value, but: &[&str], what: &str) {
    let object = |line: &Value| line.as_object().cloned().unwrap_or_default();
    let (run, again): (Map<_, _>, Map<_, _>) = (object(run), object(again));
    let keys: BTreeSet<&String> = run.keys().chain(again.keys()).collect();
    assert!(keys.len() > 50, "{what}: no results");
    for key in keys.into_iter().filter(|key| !but.contains(&key.as_str())) {
        assert_eq!(run.get(key), again.get(key), "{what}: {key}");
    }
}

#[test]
fn every_backend_is_replayed_to_the_same_result() {
    for kind in BackendKind::all() {
        let folder = Folder::new();
        let line = assert_replayed(&folder, &format!("--simulate --backend {kind}"), 0);
        assert_eq!(line["completed"], 10, "{kind}");
    }
}

#[test]
fn however_it_was_sent_it_is_replayed_to_the_same_result() {
    for run in [
        "--simulate --disable-stream",
        "--simulate --backend vllm --http-reader hyper --receive-stamps user",
        "--simulate --backend sglang-oai-chat --cold-connections --max-concurrency 3 --workers 2",
        "--simulate --request-rate 100 --goodput ttft:500 --steady-state-concurrency-ratio 0.5",
        "--simulate --backend sglang-oai --disable-include-usage --record-prompts",
        // Conversations, whose later prompts follow from replies.
        "--simulate --backend sglang-oai-chat --dataset-name generated-shared-prefix --gsp-num-groups 2 \
         --gsp-prompts-per-group 2 --gsp-num-turns 2 --gsp-system-prompt-len 8 --gsp-question-len 8 \
         --gsp-output-len 4 --disable-include-usage --max-concurrency 3",
    ] {
        assert_replayed(&Folder::new(), run, 0);
    }
}

/// Plays a script to the first request; whoever comes later finds nobody.
#[expect(clippy::disallowed_methods, reason = "the server's own times, not the client's")]
fn play(listener: TcpListener, script: &Script) -> std::io::Result<()> {
    let (mut stream, _) = listener.accept()?;
    drop(listener);
    read_request(&mut stream)?;
    let began = Instant::now();
    let wait = |ms: u64| thread::sleep(Duration::from_millis(ms).saturating_sub(began.elapsed()));
    let Script { status, content_type, writes, end } = script;
    write!(stream, "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\n")?;
    write!(stream, "transfer-encoding: chunked\r\n\r\n")?;
    for part in writes {
        wait(part.ms);
        write!(stream, "{:x}\r\n", part.bytes.len())?;
        stream.write_all(&part.bytes)?;
        write!(stream, "\r\n")?;
    }
    let Some((ms, end)) = end else { return Ok(()) };
    wait(*ms);
    match end {
        BodyEnd::Proper => write!(stream, "0\r\n\r\n"),
        BodyEnd::Cut | BodyEnd::Reset | BodyEnd::Hang => Ok(()),
    }
}

fn read_request(stream: &mut TcpStream) -> std::io::Result<()> {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer)?;
        seen.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&seen);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next());
        if count == 0
            || length.is_none_or(|length| length.parse().is_ok_and(|n: usize| body.len() >= n))
        {
            return Ok(());
        }
    }
}

#[test]
fn the_streams_of_the_cases_are_replayed_to_the_same_result() {
    let text = fs::read_to_string(root().join("tests/cases/cases.md")).expect("the cases");
    let cases = cases(&text).expect("readable cases");
    let mut played = 0;
    for case in &cases {
        let backend = match case.expect["api"].as_str() {
            Some("chat") => "sglang-oai-chat",
            Some("completions") => "sglang-oai",
            _ => "sglang",
        };
        // What never ends would wait for a time limit.
        let ends = case.script.end.is_some_and(|(ms, end)| end != BodyEnd::Hang && ms < 1000);
        if !ends || case.expect.contains_key("args") {
            continue;
        }
        played += 1;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        thread::scope(|scope| {
            scope.spawn(move || drop(play(listener, &case.script)));
            let folder = Folder::new();
            let tokenizer = root().join("tests/cases/tokenizers/bytes");
            let run = format!(
                "--backend {backend} --base-url http://127.0.0.1:{port} --model m --num-prompts 1 --tokenizer {} \
                 --warmup-requests 0 --ready-check-timeout-sec 0 --dataset-name random-ids --idle-timeout 20",
                tokenizer.display()
            );
            let success = case.expect.get("success").is_none_or(|success| success == true);
            let line = assert_replayed(&folder, &run, if success { 0 } else { 5 });
            assert_eq!(line["completed"], u64::from(success), "{}", case.name);
        });
    }
    assert!(played > 25, "{played} of {}", cases.len());
}

#[test]
fn one_request_is_shown_and_others_are_not() {
    let folder = Folder::new();
    folder.run(&[words(SMALL), words("--simulate --backend vllm")].concat()).expect_code(0);
    let shown = folder.run(&words("replay run.rec --only 7")).expect_code(0).stdout;
    for part in
        ["began ", "head: status 200", "data: {", "→ chunk with", "→ text ", "[DONE]", "sent at"]
    {
        assert!(shown.contains(part), "no `{part}` in:\n{shown}");
    }
    assert_eq!(shown.matches("began ").count(), 1);
    assert!(!shown.contains("Serving Benchmark Result"));
    let missing = folder.run(&words("replay run.rec --only 10")).expect_code(3);
    assert!(missing.stderr.contains("no such request"), "{}", missing.stderr);
}

#[test]
fn a_redacted_copy_has_the_same_numbers_and_no_words() {
    for backend in ["sglang", "vllm", "sglang-oai-chat", "trt"] {
        let folder = Folder::new();
        let run =
            format!("--simulate --backend {backend} --extra-request-body {{\"user\":\"hidden\"}}");
        folder.run(&[words(SMALL), words(&run)].concat()).expect_code(0);
        let made = folder.run(&words("replay run.rec --redact copy.rec")).expect_code(0);
        assert!(!made.stderr.contains("warning"), "{}", made.stderr);
        folder.run(&words("replay copy.rec --output-file again.jsonl")).expect_code(0);
        let line = folder.results("out.jsonl").remove(0);
        let texts = line["generated_texts"].as_array().expect("texts");
        let (file, copy) = (fs::read(folder.path("run.rec")), fs::read(folder.path("copy.rec")));
        let (file, copy) = (file.expect("a file"), copy.expect("a copy"));
        let holds = |file: &[u8], text: &str| {
            file.windows(text.len()).any(|window| window == text.as_bytes())
        };
        let word = texts[0].as_str().and_then(|text| text.split(' ').max_by_key(|word| word.len()));
        let word = word.expect("a word");
        assert!(word.len() > 4 && holds(&file, "hidden"), "{word}");
        assert!(!holds(&copy, word) && !holds(&copy, "hidden"), "{backend}");
        let words = ["generated_texts", "plan", "server_info", "errors"];
        assert_same(&line, &folder.results("again.jsonl")[0], &words, backend);
    }
}

#[test]
fn keys_are_never_in_a_recording_and_prompts_when_asked_for() {
    let folder = Folder::new();
    let _busy = busy_machine();
    let holds = |more: &str, file: &str| {
        let prompt = "a quite particular prompt";
        let row =
            format!("{{\"conversations\":[{{\"value\":\"{prompt}\"}},{{\"value\":\"yes\"}}]}}");
        fs::write(folder.path("data.jsonl"), format!("{row}\n{row}\n")).expect("a file");
        let run = format!(
            "--simulate --backend sglang-oai-chat --dataset-name custom --dataset-path data.jsonl \
             --num-prompts 2 --disable-tqdm --sharegpt-output-len 8 --output-file {file}.jsonl \
             --header X-Key=header-secret --record {file} {more}"
        );
        let ran = folder.command(&words(&run)).env("OPENAI_API_KEY", "key-secret").output();
        let ran = ran.expect("the program starts");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let bytes = fs::read(folder.path(file)).expect("a recording");
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("key-secret") && !text.contains("header-secret"));
        text.contains(prompt)
    };
    assert!(!holds("", "without.rec"));
    assert!(holds("--record-prompts", "with.rec"));
}

#[test]
fn what_was_received_before_a_kill_is_replayed() {
    let folder = Folder::new();
    let busy = busy_machine();
    let run = "--simulate --backend vllm --num-prompts 3000 --max-concurrency 4 --random-output-len 30 --disable-tqdm \
               --no-calibrate --output-file out.jsonl --record run.rec";
    let mut command = folder.command(&words(run));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a run");
    let length = || fs::metadata(folder.path("run.rec")).map_or(0, |file| file.len());
    while length() < 300_000 {
        let ended = child.try_wait().expect("its state");
        assert!(ended.is_none(), "it ended with {} bytes", length());
        thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::KILL).expect("it is running");
    child.wait().expect("its end");
    drop(busy);
    let again = folder.run(&words("replay run.rec --output-file again.jsonl")).expect_code(0);
    assert!(again.stderr.contains("has no end"), "{}", again.stderr);
    let line = folder.results("again.jsonl").remove(0);
    assert_eq!((&line["interrupted"], &line["partial"]), (&true.into(), &true.into()));
    assert!(line["completed"].as_u64() > Some(0), "{line}");
    let cut = line["failures"]["cancelled"].as_u64().unwrap_or(0);
    assert!(cut <= 4, "{line}");
}

#[test]
fn what_cannot_be_recorded_or_replayed_is_said() {
    let folder = Folder::new();
    fs::write(folder.path("there.rec"), "something").expect("a file");
    for (run, code, word) in [
        ("--simulate --record there.rec", 7, "there already"),
        ("--simulate --record no/such/folder.rec", 7, "--record"),
        ("--simulate --record-prompts", 2, "--record"),
        ("replay there.rec", 3, "--record"),
        ("replay missing.rec", 3, "missing.rec"),
        ("replay", 2, "FILE"),
    ] {
        let ended = folder.run(&words(run)).expect_code(code);
        assert!(ended.stderr.contains(word), "{run}: {}", ended.stderr);
    }
    assert_eq!(fs::read(folder.path("there.rec")).expect("a file"), b"something");
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_run() {
    let folder = Folder::new();
    let run = [words(SMALL), words("--simulate")].concat().join(" ");
    // The shell's limit on files makes the disk full after 16 blocks of 512 bytes or 1024.
    let script = format!("trap '' XFSZ; ulimit -f 16; exec \"$0\" {run} --output-file /dev/null");
    let busy = busy_machine();
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script, crate::support::program()]).current_dir(folder.path(""));
    let ran = command.env_clear().env("HOME", folder.path("")).output().expect("a run");
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    assert!(ran.status.success(), "{said}");
    assert_eq!(said.matches("its recording ends here").count(), 1, "{said}");
    assert!(said.contains("is incomplete"), "{said}");
    drop(busy);
    let again = folder.run(&words("replay run.rec"));
    assert!(again.stderr.contains("was cut"), "{}", again.said());
}
