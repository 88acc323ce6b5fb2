//! Compares bodies and decoded replies with what the Python tool really sent and made of its replies
//! (`tests/golden/PROVENANCE.md`).
//!
//! Two differences of the bodies are meant, both on the OpenAI routes: usage is asked for on streams, and
//! `--temperature` and `--top-p` reach the body.

use serde_json::{Map, Value, json};
use servebench_backends::{BackendKind, Family, GenerateOptions, ItlRule};
use servebench_core::{End, Progress, Prompt, Reply, Request, Sample, Stamp};
use std::collections::BTreeMap;

/// The values behind each flag; the last one of a repeated flag.
fn flags(argv: &[&str]) -> BTreeMap<String, Vec<String>> {
    let mut flags = BTreeMap::new();
    let mut name = String::new();
    for word in argv {
        if word.starts_with("--") {
            (*word).clone_into(&mut name);
            flags.insert(name.clone(), Vec::new());
        } else {
            flags.entry(name.clone()).or_default().push((*word).to_owned());
        }
    }
    flags
}

/// Options as the command line gives them. `sent` tells the model's name where none is given.
fn options(flags: &BTreeMap<String, Vec<String>>, sent: &Value) -> GenerateOptions {
    let has = |name: &str| flags.contains_key(name);
    let value = |name: &str| flags.get(name).and_then(|values| values.first());
    let number = |name: &str| value(name).map(|text| text.parse::<f64>().expect("a number"));
    let mut extra_body: Map<String, Value> = value("--extra-request-body")
        .map(|text| serde_json::from_str(text).expect("an object"))
        .unwrap_or_default();
    if has("--fake-prefill") {
        extra_body.insert("bootstrap_host".to_owned(), json!("2.2.2.2"));
        extra_body.insert("bootstrap_room".to_owned(), json!(0));
    }
    let model = value("--served-model-name")
        .or_else(|| value("--model"))
        .map_or_else(|| sent["model"].as_str().unwrap_or_default().to_owned(), Clone::clone);
    GenerateOptions {
        model,
        stream: !has("--disable-stream"),
        temperature: number("--temperature").unwrap_or(0.0),
        top_p: number("--top-p").unwrap_or(1.0),
        ignore_eos: !has("--disable-ignore-eos"),
        extra_body,
        return_logprob: has("--return-logprob"),
        top_logprobs_num: number("--top-logprobs-num").unwrap_or(0.0) as u32,
        logprob_start_len: number("--logprob-start-len").unwrap_or(-1.0) as i64,
        token_ids_logprob: flags
            .get("--token-ids-logprob")
            .map(|ids| ids.iter().map(|id| id.parse().expect("an id")).collect()),
        return_routed_experts: has("--return-routed-experts"),
        cache_report: has("--cache-report"),
        ..GenerateOptions::default()
    }
}

/// The row that was sent. Prompt and length are the dataset's matter, so they are read back.
fn sample(family: Family, sent: &Value) -> Sample {
    let prompt = match family {
        Family::Native => sent.get("text").unwrap_or(&sent["input_ids"]),
        Family::Completions => &sent["prompt"],
        _ => &sent["messages"][0]["content"],
    };
    let prompt = match prompt {
        Value::String(text) => Prompt::Text(text.clone()),
        ids => Prompt::Ids(serde_json::from_value(ids.clone()).expect("ids")),
    };
    let length = match family {
        Family::Native => &sent["sampling_params"]["max_new_tokens"],
        Family::Completions => &sent["max_tokens"],
        _ => &sent["max_completion_tokens"],
    };
    let output_len = length.as_u64().expect("a length") as u32;
    Sample { prompt, output_len, ..Sample::default() }
}

fn golden(name: &str) -> Vec<Value> {
    let path = format!("{}/../../tests/golden/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("the golden file");
    let mut golden: Value = serde_json::from_str(&text).expect("JSON");
    serde_json::from_value(golden["cases"].take()).expect("cases")
}

#[test]
fn bodies_are_those_of_the_python_tool() {
    let mut compared = BTreeMap::new();
    for case in golden("payloads") {
        let name = case["name"].as_str().expect("a name");
        let argv = case["argv"].as_array().expect("words").iter().filter_map(Value::as_str);
        let flags = flags(&argv.collect::<Vec<_>>());
        let kind: BackendKind = flags["--backend"][0].parse().expect("a backend");
        let info = kind.info();
        let requests = case["requests"].as_array().expect("requests");
        for request in requests.iter().filter(|request| request["path"] == info.path) {
            let sent = &request["body"];
            let protocol = kind.protocol(options(&flags, sent));
            let body = protocol.encode(&sample(info.family, sent), sent["lora_path"].as_str());
            let mut ours: Value = serde_json::from_slice(&body).expect("JSON");
            if info.family != Family::Native {
                let ours = ours.as_object_mut().expect("an object");
                let asked = ours.remove("stream_options");
                let wanted = (sent["stream"] == true).then(|| json!({"include_usage": true}));
                assert_eq!(asked, wanted, "{name}");
                if let Some(top_p) = flags.get("--top-p") {
                    assert_eq!(ours.remove("top_p").map(|n| n.to_string()), Some(top_p[0].clone()));
                }
                if let Some(temperature) = flags.get("--temperature") {
                    let passed = ours.insert("temperature".to_owned(), json!(0.0));
                    assert_eq!(passed.map(|n| n.to_string()), Some(temperature[0].clone()));
                }
            }
            assert_eq!(&ours, sent, "{name}");
            *compared.entry(kind.name()).or_insert(0) += 1;
        }
    }
    assert_eq!(compared.len(), 8, "all backends: {compared:?}");
    assert!(compared.values().all(|&n| n > 50), "many requests each: {compared:?}");
}

/// The one difference of these bodies beside the two: where a sampling flag did nothing, it does.
#[test]
fn bodies_of_single_servers_are_those_of_the_python_tool() {
    let mut compared = BTreeMap::new();
    for case in golden("routes") {
        let name = case["name"].as_str().expect("a name");
        let argv = case["argv"].as_array().expect("words").iter().filter_map(Value::as_str);
        let flags = flags(&argv.collect::<Vec<_>>());
        let kind: BackendKind = flags["--backend"][0].parse().expect("a backend");
        let changed =
            ["--temperature", "--disable-stream"].iter().any(|flag| flags.contains_key(*flag));
        let adapters = flags.contains_key("--lora-name");
        let embeds = kind.info().family == Family::Embeddings;
        let requests = case["requests"].as_array().expect("requests");
        for request in requests.iter().filter(|request| request["path"] == kind.info().path) {
            let sent = &request["body"];
            let prompt =
                ["text_input", "prompt", "input"].iter().find_map(|key| sent[key].as_str());
            let sample = Sample {
                prompt: prompt.expect("a text").into(),
                output_len: sent["max_tokens"].as_u64().unwrap_or(4) as u32,
                ..Sample::default()
            };
            let options = GenerateOptions { include_usage: false, ..options(&flags, sent) };
            let adapter = sent["lora_path"].as_str();
            assert_eq!(adapter.is_some(), adapters && embeds, "{name}");
            let body = kind.protocol(options).encode(&sample, adapter);
            let ours: Value = serde_json::from_slice(&body).expect("JSON");
            if changed && kind == BackendKind::Trt || flags.contains_key("--temperature") && !embeds
            {
                assert_ne!(&ours, sent, "{name}");
                continue;
            }
            assert_eq!(&ours, sent, "{name}");
            *compared.entry(kind.name()).or_insert(0) += 1;
        }
    }
    assert_eq!(compared.len(), 4, "all backends: {compared:?}");
    assert!(compared.values().all(|&n| n > 30), "many requests each: {compared:?}");
}

/// What the Python tool keeps of a reply, as far as it does not depend on time.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Outcome {
    text: String,
    prompt_tokens: u64,
    output_tokens: u64,
    itls: usize,
}

/// Decodes an exchange, its writes 1 ms apart.
fn replay(kind: BackendKind, exchange: &Value) -> Reply {
    let body = exchange["body"].to_string().into();
    let output_len = sample(kind.info().family, &exchange["body"]).output_len;
    let protocol = kind.protocol(GenerateOptions::default());
    let mut decoder = protocol.decoder(&Request { body, output_len, ..Request::default() });
    let mut reply = Reply::default();
    let mut at = Stamp(0);
    for write in exchange["reply"]["writes"].as_array().expect("writes") {
        at.0 += 1_000_000;
        let bytes = write.as_str().expect("text").as_bytes();
        if decoder.feed(at, bytes, &mut reply) == Progress::Done {
            break;
        }
    }
    decoder.end(at, End::Complete, &mut reply);
    reply
}

#[test]
fn replies_are_read_as_by_the_python_tool() {
    let mut compared = 0;
    for case in golden("results") {
        let name = case["name"].as_str().expect("a name");
        let line = &case["line"];
        let Some(texts) = line["generated_texts"].as_array() else { continue };
        let argv = case["argv"].as_array().expect("words").iter().filter_map(Value::as_str);
        let flags = flags(&argv.collect::<Vec<_>>());
        let kind: BackendKind = flags["--backend"][0].parse().expect("a backend");
        // What the Python tool makes of the tokenizer and the acceptance length is not the decoder's.
        let by_chunk = kind.info().itl != ItlRule::PerToken;
        let counts_itls = !(by_chunk && line["accept_length"].is_number());
        let count = |value: &Value| value.as_u64().expect("a count");
        let mut want: Vec<Outcome> = (0..texts.len())
            .filter(|&row| line["errors"][row] == "")
            .map(|row| Outcome {
                text: texts[row].as_str().expect("a text").to_owned(),
                prompt_tokens: count(&line["input_lens"][row]),
                output_tokens: count(&line["output_lens"][row]),
                itls: line["itls"][row].as_array().map_or(0, Vec::len),
            })
            .collect();
        let exchanges = case["exchanges"].as_array().expect("exchanges");
        let mut got: Vec<Outcome> = exchanges[exchanges.len() - texts.len()..]
            .iter()
            .filter(|exchange| exchange["reply"]["status"] == 200)
            .map(|exchange| {
                let reply = replay(kind, exchange);
                assert_eq!(reply.failure, None, "{name}");
                let later = reply.chunks.iter().skip(1);
                let tokens = later.map(|chunk| chunk.tokens.map_or(1, |n| n as usize));
                Outcome {
                    itls: if by_chunk { reply.chunks.len() - 1 } else { tokens.sum() },
                    prompt_tokens: reply.prompt_tokens.map_or(0, u64::from),
                    output_tokens: reply.completion_tokens.map_or(0, u64::from),
                    text: reply.text,
                }
            })
            .collect();
        for (want, got) in want.iter_mut().zip(&mut got) {
            if !counts_itls {
                (want.itls, got.itls) = (0, 0);
            }
        }
        want.sort();
        got.sort();
        // Where the server sent no usage, the Python tool takes what was asked for.
        for (want, got) in want.iter_mut().zip(&got) {
            if got.output_tokens == 0 {
                want.output_tokens = 0;
            }
            if got.prompt_tokens == 0 {
                want.prompt_tokens = 0;
            }
        }
        assert_eq!(got, want, "{name}");
        compared += 1;
    }
    assert!(compared > 35, "only {compared} cases");
}
