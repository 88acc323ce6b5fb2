//! What is secret stands in nothing that a run leaves: neither in what it says nor in any file.

use super::bench::Bench;
use super::peer::{Peer, Seen, Then, Wire, usual};
use bench_vllm::run as run_vllm;
use serde_json::json;
use servebench_cli::{Environment, Io};
use std::path::Path;

/// What nobody may see. Each secret holds this word.
const WORD: &str = "zq7hidden";

const VARIABLES: [(&str, &str); 4] = [
    ("OPENAI_API_KEY", "sk-zq7hidden-key"),
    ("HF_TOKEN", "hf_zq7hidden-token"),
    ("HTTPS_PROXY", "http://me:zq7hidden-password@127.0.0.1:9"),
    ("HTTP_PROXY", "http://me:zq7hidden-password@127.0.0.1:9"),
];

const HEADER: &str = "--header X-Team=zq7hidden-team";

/// All that was asked, as a careless server repeats it.
fn repeated(seen: &Seen) -> String {
    let headers = ["authorization", "x-team", "proxy-authorization"];
    let headers = headers.map(|name| format!("{name}: {}", seen.header(name).unwrap_or("none")));
    headers.join("; ")
}

/// Everything that a command left: what it said, and the texts of all files.
fn left_behind(said: &str, folder: &Path) -> String {
    let mut all = said.to_owned();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            all += &path.to_string_lossy();
            if path.is_dir() {
                folders.push(path);
            } else {
                all += &String::from_utf8_lossy(&std::fs::read(path).expect("a file"));
            }
        }
    }
    all
}

#[track_caller]
fn clean(what: &str, said: &str, folder: &Path) {
    let all = left_behind(said, folder);
    let at = all.find(WORD).map(|at| all[at.saturating_sub(200)..].chars().take(400).collect());
    assert_eq!(at, None::<String>, "{what}");
}

/// Everything that a server can do to get a key shown.
fn traps() -> Vec<(&'static str, Peer)> {
    fn trap(
        name: &'static str,
        handler: impl Fn(&Seen, &mut Wire) -> Then + Send + Sync + 'static,
    ) -> (&'static str, Peer) {
        (name, Peer::start(handler))
    }
    let load = |answer: fn(&Seen, &mut Wire) -> Then| {
        move |seen: &Seen, wire: &mut Wire| {
            if seen.generates() { answer(seen, wire) } else { usual(seen, wire) }
        }
    };
    vec![
        trap("all is well", usual),
        trap("the key is refused", |seen, wire| wire.json(401, &json!({"error": repeated(seen)}))),
        trap(
            "a refused request",
            load(|seen, wire| wire.json(500, &json!({"error": repeated(seen)}))),
        ),
        trap(
            "an error in the stream",
            load(|seen, wire| {
                let error = json!({"error": {"message": repeated(seen), "code": 500}});
                wire.stream(&[format!("data: {error}\n\n")])
            }),
        ),
        trap(
            "a redirect",
            load(|seen, wire| {
                let to = format!("http://127.0.0.1:9/{}", repeated(seen).replace(' ', "%20"));
                let head = format!("HTTP/1.1 307 Elsewhere\r\nlocation: {to}\r\ncontent-length: 0");
                wire.send(format!("{head}\r\n\r\n").as_bytes());
                Then::KeepAlive
            }),
        ),
        trap(
            "no HTTP",
            load(|seen, wire| {
                wire.send(format!("{}\r\n\r\n", repeated(seen)).as_bytes());
                Then::Close
            }),
        ),
        trap(
            "no JSON",
            load(|seen, wire| wire.reply(200, "text/plain", repeated(seen).as_bytes())),
        ),
        trap("a server that tells how it was started", |seen, wire| {
            if seen.path.ends_with("/server_info") {
                let key = seen.header("authorization").unwrap_or("none").replace("Bearer ", "");
                let command = ["serve", "--api-key", &key];
                return wire.json(
                    200,
                    &json!({"api_key": key, "command": command, "env": repeated(seen)}),
                );
            }
            usual(seen, wire)
        }),
    ]
}

#[test]
fn no_secret_is_left_behind_whatever_a_server_does() {
    for (name, peer) in traps() {
        for flags in
            ["", "--ready-check-timeout-sec 9 --warmup-requests 1 --flush-cache", "--retries 1"]
        {
            let bench = Bench::of(&peer).and(HEADER).and("--backend sglang").and(flags);
            let (log, tape) = (bench.path("run.log"), bench.path("run.tape"));
            let bench = bench
                .with("--raw-log", log.to_str().expect("a path in UTF-8"))
                .with("--record", tape.to_str().expect("a path in UTF-8"));
            let ended = bench.run_with(VARIABLES);
            clean(&format!("{name}: {flags}"), &ended.everything(), &bench.path(""));
        }
        let sent = peer.generations();
        assert!(sent.iter().all(|seen| repeated(seen).contains("Bearer sk-zq7hidden-key")));
        assert!(peer.requests().iter().any(|seen| repeated(seen).contains("zq7hidden-team")));
    }
}

#[test]
fn no_secret_is_left_behind_without_a_server() {
    let nobody = "http://127.0.0.1:9";
    for flags in [
        "",
        "--dry-run",
        "--ready-check-timeout-sec 1",
        "--help",
        "--no-such-flag",
        "--header zq7hidden-alone",
        "--header X-Empty=",
        "--num-prompts x",
        "--tokenizer no/such-tokenizer",
    ] {
        let bench = Bench::at(nobody).and(HEADER).and(flags);
        let ended = bench.run_with(VARIABLES);
        clean(flags, &ended.everything(), &bench.path(""));
    }
    let bench = Bench::at(nobody).with("--header", "X-Team=zq7hidden\nX-More=1");
    let ended = bench.run_with(VARIABLES).code(2);
    clean("a header that cannot be sent", &ended.everything(), &bench.path(""));

    let bench = Bench::at("http://me:zq7hidden-user@127.0.0.1:9");
    let ended = bench.run_with(VARIABLES).code(2);
    clean("credentials in the address", &ended.everything(), &bench.path(""));
}

#[test]
fn a_proxy_that_repeats_its_credentials_does_not_get_them_shown() {
    let proxy = Peer::start(|seen, wire| wire.reply(407, "text/plain", repeated(seen).as_bytes()));
    let url = format!("http://me:zq7hidden-password@127.0.0.1:{}", proxy.port());
    for flags in ["", "--ready-check-timeout-sec 1", "--retries 1"] {
        let bench = Bench::at("http://192.0.2.1:8000").and(flags);
        let ended = bench.run_with([("HTTP_PROXY", url.as_str()), VARIABLES[0]]);
        assert!(ended.err.contains("407") || ended.err.contains("proxy"), "{}", ended.err);
        clean(flags, &ended.everything(), &bench.path(""));
    }
    // "me:zq7hidden-password" in base64.
    let sent = "Basic bWU6enE3aGlkZGVuLXBhc3N3b3Jk";
    let seen = proxy.requests();
    assert!(seen.iter().all(|seen| seen.header("proxy-authorization") == Some(sent)));
    assert!(!seen.is_empty());
}

#[test]
fn the_other_command_leaves_none_behind_either() {
    for (name, peer) in traps() {
        let folder = Bench::of(&peer);
        let (io, captured) = Io::captured();
        let url = peer.url();
        let tokenizer = super::bench::tokenizer("bytes");
        let place = folder.path("");
        let words = format!(
            "serve --backend openai-chat --endpoint /v1/chat/completions --base-url {url} --model m \
             --tokenizer {} --dataset-name random --random-input-len 8 --random-output-len 4 \
             --num-prompts 2 --disable-tqdm {HEADER} --save-result --save-detailed --result-dir {}",
            tokenizer.display(),
            place.display(),
        );
        let words = words.split_whitespace().map(Into::into).collect();
        let failure = match run_vllm(words, &Environment::from_pairs(VARIABLES), &io) {
            Ok(_) => String::new(),
            Err(failure) => failure.to_string(),
        };
        clean(name, &format!("{}{}{failure}", captured.out(), captured.err()), &place);
        assert!(peer.generations().iter().all(|seen| repeated(seen).contains("sk-zq7hidden-key")));
    }
}

#[cfg(unix)]
#[test]
fn what_is_written_has_the_permissions_of_any_new_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer);
    let other = bench.file("other", "");
    let (log, tape) = (bench.path("run.log"), bench.path("run.tape"));
    let bench = bench
        .with("--raw-log", log.to_str().expect("a path in UTF-8"))
        .with("--record", tape.to_str().expect("a path in UTF-8"));
    bench.run().code(0);
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode();
    for path in [bench.path("out.jsonl"), log, tape] {
        assert_eq!(mode(&path), mode(Path::new(&other)), "{}", path.display());
    }
}
