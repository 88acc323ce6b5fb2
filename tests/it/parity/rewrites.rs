//! What the meant differences do to calls and values.

use super::capture::{Call, is_generation};
use super::golden::Case;
use serde_json::{Value, json};

/// The calls of one run.
#[derive(Debug)]
pub(super) struct Calls {
    /// Those of the Python tool.
    pub(super) recorded: Vec<Call>,
    /// Ours.
    pub(super) ours: Vec<Call>,
}

pub(super) fn without_broken_headers(arguments: &mut Vec<String>) -> bool {
    let Some(flag) = arguments.iter().position(|word| word == "--header") else { return false };
    let before = arguments.len();
    let mut is_item = false;
    let mut at = 0;
    arguments.retain(|word| {
        is_item = at > flag && (is_item || at == flag + 1) && !word.starts_with("--");
        at += 1;
        let whole = word.split_once('=').is_some_and(|(k, v)| !k.is_empty() && !v.is_empty());
        !is_item || whole
    });
    arguments.len() < before
}

pub(super) fn without_begin_of_sequence(case: &Case, prompt: &mut Value) -> bool {
    let text =
        prompt.as_str().filter(|text| case.has("--apply-chat-template") && text.contains("<s>"));
    let Some(text) = text.map(|text| text.replace("<s>", "")) else { return false };
    *prompt = text.into();
    true
}

pub(super) fn without_transport_headers(_: &Case, calls: &mut Calls) -> bool {
    for call in calls.recorded.iter_mut().chain(&mut calls.ours) {
        for name in ["accept", "accept-encoding", "connection", "content-length", "user-agent"] {
            call.headers.remove(name);
        }
    }
    true
}

pub(super) fn headers_on_control_calls(_: &Case, calls: &mut Calls) -> bool {
    let generation = calls.recorded.iter().find(|call| is_generation(call));
    let mut given = generation.map(|call| call.headers.clone()).unwrap_or_default();
    given.retain(|name, _| !["host", "content-type"].contains(&&**name));
    let mut changed = false;
    for call in calls.recorded.iter_mut().filter(|call| !is_generation(call)) {
        for (name, value) in &given {
            let was = call.headers.insert(name.clone(), value.clone());
            changed |= was.as_ref() != Some(value);
        }
    }
    changed
}

pub(super) fn one_server_info(_: &Case, calls: &mut Calls) -> bool {
    let before = calls.recorded.len();
    calls.recorded.dedup_by(|later, call| later.path == "/server_info" && later.path == call.path);
    calls.recorded.len() < before
}

/// Puts the shape of a prompt in its place.
fn prompt_shape(body: &mut Value) -> Option<Value> {
    let prompt = match body {
        body if body.get("messages").is_some() => body.pointer_mut("/messages/0/content")?,
        body => ["text", "input_ids", "prompt"]
            .into_iter()
            .find(|key| body.get(key).is_some())
            .and_then(|key| body.get_mut(key))?,
    };
    let shape = match &*prompt {
        Value::String(text) if !text.is_empty() => json!("some text"),
        Value::Array(ids) => json!(format!("{} ids", ids.len())),
        _ => return None,
    };
    Some(std::mem::replace(prompt, shape))
}

pub(super) fn warm_up_prompts(case: &Case, calls: &mut Calls) -> bool {
    let flushes = |call: &Call| call.path.starts_with("/flush") || call.path.starts_with("/reset");
    if calls.recorded.iter().any(flushes) {
        return false;
    }
    let count = case.value("--warmup-requests").and_then(|n| n.parse().ok()).unwrap_or(1);
    let first = |calls: &mut Vec<Call>| -> Vec<Option<Value>> {
        let generations = calls.iter_mut().filter(|call| is_generation(call)).take(count);
        generations.map(|call| prompt_shape(call.body.as_mut()?)).collect()
    };
    let (recorded, ours) = (first(&mut calls.recorded), first(&mut calls.ours));
    !recorded.is_empty() && recorded.iter().zip(&ours).all(|(recorded, ours)| recorded != ours)
}

/// The bodies recorded on OpenAI routes.
fn openai_bodies(calls: &mut Calls) -> impl Iterator<Item = &mut Value> {
    let openai = calls.recorded.iter_mut().filter(|call| call.path.ends_with("completions"));
    openai.filter_map(|call| call.body.as_mut())
}

pub(super) fn include_usage(_: &Case, calls: &mut Calls) -> bool {
    let streams = openai_bodies(calls).filter(|body| body["stream"] == true);
    streams.map(|body| body["stream_options"] = json!({"include_usage": true})).count() > 0
}

pub(super) fn sampling_on_openai_routes(case: &Case, calls: &mut Calls) -> bool {
    let mut changed = false;
    for (flag, key) in [("--temperature", "temperature"), ("--top-p", "top_p")] {
        let Some(value) = case.value(flag).and_then(|text| text.parse::<f64>().ok()) else {
            continue;
        };
        for body in openai_bodies(calls) {
            body[key] = json!(value);
            changed = true;
        }
    }
    changed
}

pub(super) fn numbers_in_profile(_: &Case, calls: &mut Calls) -> bool {
    let starts = calls.recorded.iter_mut().filter(|call| call.path == "/start_profile");
    let mut changed = false;
    for body in starts.filter_map(|call| call.body.as_mut()) {
        for key in ["num_steps", "start_step"] {
            if let Some(number) = body[key].as_str().and_then(|text| text.parse::<u64>().ok()) {
                body[key] = json!(number);
                changed = true;
            }
        }
    }
    changed
}

pub(super) fn stop_without_step(_: &Case, calls: &mut Calls) -> bool {
    let stops = calls.recorded.iter_mut().filter(|call| call.path == "/stop_profile");
    let steps = stops.filter_map(|call| call.body.as_mut()?.as_object_mut()?.remove("start_step"));
    steps.count() > 0
}

pub(super) fn no_second_stop(case: &Case, calls: &mut Calls) -> bool {
    let before = calls.recorded.len();
    if case.has("--profile-by-stage") {
        calls.recorded.retain(|call| call.path != "/stop_profile");
    }
    calls.recorded.len() < before
}

pub(super) fn vllm_is_stopped(case: &Case, calls: &mut Calls) -> bool {
    let before = calls.ours.len();
    let steps = ["--profile-steps", "--profile-num-steps", "--profile-by-stage"];
    if case.name().starts_with("vllm") && steps.iter().any(|flag| case.has(flag)) {
        calls.ours.retain(|call| call.path != "/stop_profile");
    }
    calls.ours.len() < before
}

/// Whether a value is the recorded one; a number that depended on the clock is any number.
pub(super) fn same(recorded: &Value, ours: &Value) -> bool {
    match (recorded, ours) {
        (Value::String(text), Value::Number(_)) if text == "{NUMBER}" => true,
        (Value::Array(recorded), Value::Array(ours)) => {
            recorded.len() == ours.len() && recorded.iter().zip(ours).all(|(a, b)| same(a, b))
        }
        _ => recorded == ours,
    }
}

pub(super) fn infinite_rate(_: &Case, key: &str, recorded: &Value, line: &Value) -> bool {
    key == "request_rate" && recorded == "Infinity" && line[key] == "inf"
}

pub(super) fn twin(_: &Case, key: &str, recorded: &Value, line: &Value) -> bool {
    line.get(format!("upstream_{key}")).is_some_and(|twin| same(recorded, twin))
}

/// A number, or numbers, of which some zeros are `null` here.
pub(super) fn not_measured(_: &Case, key: &str, recorded: &Value, line: &Value) -> bool {
    let none =
        |recorded: &Value, ours: &Value| recorded.is_f64() && recorded == 0.0 && ours.is_null();
    match (recorded, &line[key]) {
        (Value::Array(recorded), Value::Array(ours)) => {
            let mut pairs = recorded.iter().zip(ours);
            recorded.len() == ours.len() && pairs.all(|(a, b)| same(a, b) || none(a, b))
        }
        (recorded, ours) => none(recorded, ours),
    }
}

pub(super) fn other_words(_: &Case, key: &str, recorded: &Value, line: &Value) -> bool {
    let (Some(recorded), Some(ours)) = (recorded.as_array(), line[key].as_array()) else {
        return false;
    };
    let mut pairs = recorded.iter().zip(ours);
    key == "errors" && recorded.len() == ours.len() && pairs.all(|(a, b)| (a == "") == (b == ""))
}

pub(super) fn counted_by_tokenizer(case: &Case, key: &str, recorded: &Value, line: &Value) -> bool {
    let (Some(recorded), Some(ours)) = (recorded.as_array(), line[key].as_array()) else {
        return false;
    };
    let mut rows = recorded.iter().zip(ours).enumerate();
    let total: Option<u64> = ours.iter().map(Value::as_u64).sum();
    key == "output_lens"
        && recorded.len() == ours.len()
        && rows.all(|(i, (a, b))| a == b || line["output_len_sources"][i] == "tokenizer")
        && total == case.get("line")["total_output_tokens_retokenized"].as_u64()
}

/// A prompt is another number of tokens than was asked for where its text encodes to another one.
pub(super) fn prompts_counted_by_tokenizer(
    _case: &Case,
    key: &str,
    recorded: &Value,
    line: &Value,
) -> bool {
    let (Some(recorded), Some(ours)) = (recorded.as_array(), line[key].as_array()) else {
        return false;
    };
    let nominal = ours.iter().zip(recorded).filter(|(ours, asked)| ours == asked).count();
    // The totals are those of the dataset, over the requests that succeeded.
    let asked: u64 = recorded.iter().filter_map(Value::as_u64).sum();
    key == "input_lens"
        && recorded.len() == ours.len()
        && nominal > 0
        && line["total_input_tokens"].as_u64().is_some_and(|total| total > 0 && total <= asked)
}
