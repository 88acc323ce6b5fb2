//! Prompts: their real lengths, too few of them, templates, files that are bad or missing.

use super::bench::{Bench, number, tiny_llama, tokenizer};
use super::peer::{Peer, Then, Wire, done, event, usual};
use serde_json::{Value, json};
use servebench_core::random::Draws;
use servebench_datasets::{DatasetName, DatasetOptions, load};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::fs;

fn hub() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("no-cache") })
}

fn load_tokenizer(path: &str) -> Tokenizer {
    Tokenizer::load(path, &hub()).expect("a tokenizer")
}

/// A completions server that counts the tokens of the prompts it gets, as servers do.
fn counting(name: &str) -> Peer {
    let tokenizer = load_tokenizer(name);
    Peer::start(move |seen, wire| {
        if !seen.generates() {
            return usual(seen, wire);
        }
        let count = tokenizer.count(&seen.prompt(), true).expect("a count");
        completion(wire, Some(count))
    })
}

fn completion(wire: &mut Wire, prompt_tokens: Option<u32>) -> Then {
    let usage = json!({"prompt_tokens": prompt_tokens, "completion_tokens": 1});
    let choice = json!({"index": 0, "text": "a", "finish_reason": "length"});
    wire.stream(&[event(&json!({"choices": [choice], "usage": usage})), done()])
}

/// DATA-01: the lengths reported are those that the server sees.
#[test]
fn input_lengths_are_what_the_server_counts() {
    let names =
        ["drift", "bytes", "bos"].map(|name| tokenizer(name).to_string_lossy().into_owned());
    for name in names.iter().chain([&tiny_llama()]) {
        let counted = load_tokenizer(name);
        for exact in ["", "--exact-lengths"] {
            let peer = counting(name);
            let bench = Bench::of(&peer).with("--tokenizer", name).with("--backend", "sglang-oai");
            let bench = bench.and("--num-prompts 30 --random-input-len 9 --max-concurrency 1");
            let ended = bench.and(exact).run().code(0);
            let sees = peer.generations();
            let sees = sees.iter().map(|seen| counted.count(&seen.prompt(), true).expect("tokens"));
            let sees: Vec<u32> = sees.collect();
            let line = ended.line();
            assert_eq!(line["input_lens"], json!(sees), "{name} {exact}");
            let total: u32 = sees.iter().sum();
            assert_eq!(line["total_input_tokens_server"], total, "{name} {exact}");
            if exact.is_empty() {
                // The totals stay comparable with the Python tool's, so the difference is told.
                let same = line["total_input_tokens"] == total;
                assert_eq!(same, !ended.err.contains("drift"), "{name}: {}", ended.err);
            } else {
                assert_eq!(line["total_input_tokens"], total, "{name} {exact}");
                assert!(sees.iter().all(|seen| *seen == 9), "{name}: {sees:?}");
            }
        }
    }
}

/// The same where the server tells nothing: exact lengths need no server to be right.
#[test]
fn exact_lengths_need_no_count_of_the_servers() {
    let peer =
        Peer::start(
            |seen, wire| {
                if seen.generates() { completion(wire, None) } else { usual(seen, wire) }
            },
        );
    let name = tokenizer("drift").to_string_lossy().into_owned();
    let bench = Bench::of(&peer).with("--tokenizer", &name).with("--backend", "sglang-oai");
    let bench = bench.and("--num-prompts 20 --exact-lengths --max-concurrency 1");
    let ended = bench.run().code(0);
    let counted = load_tokenizer(&name);
    let sees = peer.generations();
    let sees = sees.iter().map(|seen| counted.count(&seen.prompt(), true).expect("tokens"));
    assert_eq!(ended.line()["input_lens"], json!(sees.collect::<Vec<u32>>()));
}

/// DATA-01: ids are integers, as many as asked for.
#[test]
fn ids_are_sent_as_integers() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--backend sglang --tokenize-prompt --num-prompts 5");
    bench.with("--tokenizer", &tiny_llama()).run().code(0);
    for seen in peer.generations() {
        let body = seen.json();
        let ids = body["input_ids"].as_array().expect("ids");
        assert!(ids.len() == 8 && ids.iter().all(Value::is_u64), "{body}");
        assert_eq!(body.get("text"), None);
    }
}

/// DATA-03, the column of this command.
#[test]
fn the_range_ratio_is_a_share_of_the_asked_length() {
    let tokenizer = Tokenizer::byte_level();
    for (full, ratio, low) in [
        (100, 0.0, 1),
        (100, 0.5, 50),
        (100, 1.0, 100),
        (100, 0.29, 28),
        (100, 0.1, 10),
        (1000, 0.9, 900),
        (7, 0.3, 2),
        (10, 0.9, 9),
        (1, 0.9, 1),
    ] {
        let options = DatasetOptions {
            name: DatasetName::RandomIds,
            num_prompts: 2000,
            random_input_len: full,
            random_output_len: full,
            random_range_ratio: ratio,
            tokenize_prompt: true,
            ..DatasetOptions::default()
        };
        let loaded = load(&options, &tokenizer, &hub(), &mut Draws::new(1)).expect("prompts");
        let lengths = |of: fn(&servebench_core::Sample) -> u32| -> Vec<u32> {
            loaded.samples.iter().map(of).collect()
        };
        let (input, output) = (lengths(|row| row.prompt_len), lengths(|row| row.output_len));
        for lengths in [&input, &output] {
            let range = (lengths.iter().min(), lengths.iter().max());
            assert_eq!(range, (Some(&low), Some(&full)), "{full} at {ratio}");
        }
        assert_eq!(input == output, low == full, "{full} at {ratio}: two draws");
    }
    let peer = Peer::start(usual);
    for ratio in ["1.5", "-0.1", "nan"] {
        let ended = Bench::of(&peer).with("--random-range-ratio", ratio).run().code(2);
        ended.says(&["--random-range-ratio", ratio]);
    }
}

/// Rows of a JSONL file of conversations.
fn rows(prompts: &[&str]) -> String {
    let row = |prompt: &&str| {
        let turns = [json!({"content": prompt}), json!({"content": "an answer"})];
        json!({"conversations": turns}).to_string() + "\n"
    };
    prompts.iter().map(row).collect()
}

/// One request for each row of `text`.
fn custom(peer: &Peer, text: &str) -> Bench {
    let bench = Bench::of(peer).and("--backend sglang-oai --dataset-name custom");
    let file = bench.file("rows.jsonl", text);
    bench.with("--dataset-path", &file)
}

/// DATA-05.
#[test]
fn fewer_rows_than_asked_for_are_not_passed_off_as_all() {
    let peer = Peer::start(usual);
    let bench = custom(&peer, &rows(&["one", "two", "three"]));
    let ended = bench.and("--num-prompts 10 --max-concurrency 64").run().code(0);
    ended.says(&["warning", "only 3 of 10", "rows.jsonl"]);
    let line = ended.line();
    assert_eq!(peer.generations().len(), 3);
    assert_eq!((&line["completed"], &line["num_prompts"]), (&json!(3), &json!(3)));
    let throughput = number(&line["request_throughput"]) * number(&line["duration"]);
    assert!((throughput - 3.0).abs() < 1e-6, "{line}");
}

#[test]
fn no_usable_row_is_an_error_before_anything_is_sent() {
    let peer = Peer::start(usual);
    let bench = custom(&peer, &rows(&[""; 13])).and("--num-prompts 10 --warmup-requests 1");
    let ended = bench.run().code(3);
    ended.says(&["no usable rows", "13", "rows.jsonl"]);
    assert!(ended.lines.is_empty() && peer.generations().is_empty());
}

#[test]
fn a_bad_line_is_named() {
    let peer = Peer::start(usual);
    let text = rows(&["one", "two"]).replacen('\n', "\n{\"conversations\": [\n", 1);
    let ended = custom(&peer, &text).and("--num-prompts 2").run().code(0);
    ended.says(&["warning", "rows.jsonl", "line 2"]);
    assert_eq!(ended.line()["completed"], 2);
}

#[test]
fn bad_files_are_named() {
    let peer = Peer::start(usual);
    let sharegpt = |name: &str, bytes: &[u8]| {
        let bench = Bench::of(&peer).and("--dataset-name sharegpt");
        let path = bench.path(name);
        fs::write(&path, bytes).expect("a file");
        bench.with("--dataset-path", &path.to_string_lossy()).run().code(3)
    };
    let text = "[{\"conversations\": [{\"value\": \"a\"}, {\"value\": \"b\"}]},\n{\"conver";
    sharegpt("cut.json", text.as_bytes()).says(&["cut.json", "after 1 rows", "line 2"]);
    sharegpt("latin.json", b"[\"\xe9\"]").says(&["latin.json", "UTF-8", "byte 2"]);
    sharegpt("object.json", b"{}").says(&["object.json", "line 1"]);
    let bench = Bench::of(&peer).and("--dataset-name sharegpt --dataset-path no/such/file.json");
    bench.run().code(3).says(&["no/such/file.json"]);
    assert!(peer.generations().is_empty());
}

/// A download that must not happen is an error that shows the ways on.
#[test]
fn an_offline_hub_is_named_with_the_ways_on() {
    let peer = Peer::start(usual);
    let bench = Bench::of(&peer).and("--dataset-name sharegpt");
    let home = bench.path("hub-home").to_string_lossy().into_owned();
    let ended = bench.run_with([("HF_HUB_OFFLINE", "1"), ("HF_HOME", &home)]).code(3);
    let file = "ShareGPT_V3_unfiltered_cleaned_split.json";
    ended.says(&[file, &home, "HF_HUB_OFFLINE", "--dataset-path", "random-ids"]);
    assert!(peer.generations().is_empty());
}

const TEMPLATE: &str = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}\
                        {% if add_generation_prompt %}[assistant]{% endif %}";

/// Sends `prompt` through the template of a tokenizer with this configuration, and further files.
fn templated(peer: &Peer, prompt: &str, config: &Value, files: &[(&str, &str)]) -> Bench {
    let bench = custom(peer, &rows(&[prompt]));
    let folder = bench.path("tokenizer");
    fs::create_dir(&folder).expect("a folder");
    let from = tokenizer("bytes").join("tokenizer.json");
    fs::copy(from, folder.join("tokenizer.json")).expect("a tokenizer");
    fs::write(folder.join("tokenizer_config.json"), config.to_string()).expect("a file");
    for (name, text) in files {
        fs::write(folder.join(name), text).expect("a file");
    }
    bench.with("--tokenizer", &folder.to_string_lossy()).and("--apply-chat-template")
}

/// DATA-06.
#[test]
fn chat_templates() {
    let leading = format!("<s>{TEMPLATE}");
    let named = json!([
        {"name": "tool_use", "template": "wrong"},
        {"name": "default", "template": TEMPLATE},
    ]);
    let rich = "{{ messages[0]['content'].strip() | tojson }}{% for m in messages[:1] %}\
                {{ loop.index0 }}{% endfor %}{{ strftime_now('%Y')[:2] }}";
    let special = json!({"content": "<s>", "special": true});
    type Case = (&'static str, Value, &'static [(&'static str, &'static str)], &'static str);
    let cases: [Case; 8] = [
        ("aa", json!({"bos_token": null, "chat_template": TEMPLATE}), &[], "[user]aa[assistant]"),
        ("aa", json!({"bos_token": "<s>", "chat_template": leading}), &[], "[user]aa[assistant]"),
        ("aa", json!({"bos_token": special, "chat_template": leading}), &[], "[user]aa[assistant]"),
        ("aa", json!({"bos_token": "", "chat_template": leading}), &[], "<s>[user]aa[assistant]"),
        (
            "a<s>a",
            json!({"bos_token": "<s>", "chat_template": leading}),
            &[],
            "[user]a<s>a[assistant]",
        ),
        ("aa", json!({"chat_template": named}), &[], "[user]aa[assistant]"),
        ("aa", json!({}), &[("chat_template.jinja", TEMPLATE)], "[user]aa[assistant]"),
        ("  aa ", json!({"chat_template": rich}), &[], "\"aa\"020"),
    ];
    for (prompt, config, files, want) in cases {
        let peer = Peer::start(usual);
        let ended = templated(&peer, prompt, &config, files).run().code(0);
        let [seen] = &peer.generations()[..] else { panic!("one request") };
        assert_eq!(seen.prompt(), want, "{config}");
        // One token for each byte, and one for what the configuration calls a special token.
        let special = config["bos_token"].as_str().filter(|token| !token.is_empty());
        let tokens = special.map_or(want.len(), |token| want.replace(token, "B").len());
        assert_eq!(ended.line()["total_input_tokens"], tokens, "{config}");
    }
}

#[test]
fn a_template_that_is_missing_or_refuses_is_an_error_before_anything_is_sent() {
    let peer = Peer::start(usual);
    let ended = templated(&peer, "aa", &json!({}), &[]).run().code(3);
    ended.says(&["tokenizer", "no chat template", "--apply-chat-template"]);
    let refusing = "{{ raise_exception('system not supported') }}";
    let ended = templated(&peer, "aa", &json!({"chat_template": refusing}), &[]).run().code(3);
    ended.says(&["chat template", "system not supported"]);
    assert!(peer.generations().is_empty());
}
