//! The shapes of replies.

use crate::client::{Client, post};
use serde_json::{Value, json};
use servebench_sim::{CostModel, Sim, SimConfig, Speculative, TextStyle, Timing};

async fn reply_to(config: SimConfig, path: &str, body: &Value) -> crate::client::Reply {
    Client::new(&Sim::new(config)).await.post(path, &body.to_string()).await
}

/// An engine whose steps take no time.
fn instant_engine() -> CostModel {
    CostModel {
        step_us: 0.0,
        prefill_token_us: 0.0,
        decode_token_us: 0.0,
        context_token_us: 0.0,
        ..CostModel::tiny()
    }
}

fn with_engine(cost: CostModel) -> SimConfig {
    SimConfig { timing: Timing::Engine(cost), ..SimConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn native_events_are_cumulative() {
    let body = json!({"text": "hello", "sampling_params": {"max_new_tokens": 3}, "stream": true,
        "rid": "my \"name\""});
    let reply = reply_to(SimConfig::default(), "/generate", &body).await;
    assert_eq!(reply.headers["content-type"], "text/event-stream; charset=utf-8");
    let events = reply.values();
    assert_eq!(events.len(), 4);
    assert_eq!(events[1]["text"].as_str().map(str::len), Some(2));
    assert_eq!(events[1]["output_ids"].as_array().map(Vec::len), Some(2));
    assert_eq!(
        events[1]["meta_info"],
        json!({"id": "my \"name\"", "finish_reason": null,
        "prompt_tokens": 5, "weight_version": "default", "num_retractions": 0,
        "reasoning_tokens": 0, "completion_tokens": 2, "cached_tokens": 0})
    );
    assert_eq!(events[2]["meta_info"]["finish_reason"], json!({"type": "length", "length": 3}));
    assert_eq!(events[2]["meta_info"]["e2e_latency"], json!(0.0));
    assert_eq!(events[3], json!("[DONE]"));
    assert!(events[0].get("index").is_none());
}

#[tokio::test(start_paused = true)]
async fn native_modes_change_the_text_alone() {
    let body = json!({"input_ids": [5, 6], "sampling_params": {"max_new_tokens": 3},
        "stream": true});
    let config = SimConfig { incremental_output: true, ..SimConfig::default() };
    let events = reply_to(config, "/generate", &body).await.values();
    let lengths: Vec<_> = events[..3]
        .iter()
        .map(|e| (e["text"].as_str().map(str::len), e["meta_info"]["completion_tokens"].as_u64()))
        .collect();
    assert_eq!(lengths, [(Some(1), Some(1)), (Some(1), Some(2)), (Some(1), Some(3))]);
    let config = SimConfig { omit_text: true, ..SimConfig::default() };
    let events = reply_to(config, "/generate", &body).await.values();
    assert!(events[0].get("text").is_none() && events[0]["output_ids"].is_array());
    assert_eq!(events[0]["meta_info"]["prompt_tokens"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_native_batch_is_indexed() {
    let body = json!({"input_ids": [[1, 2], [3]], "stream": true,
        "sampling_params": [{"max_new_tokens": 2}, {"max_new_tokens": 1}]});
    let events = reply_to(SimConfig::default(), "/generate", &body).await.values();
    let seen: Vec<_> = events[..events.len() - 1]
        .iter()
        .map(|e| {
            (
                e["index"].as_u64(),
                e["meta_info"]["completion_tokens"].as_u64(),
                e["meta_info"]["prompt_tokens"].as_u64(),
            )
        })
        .collect();
    let event = |index, tokens, prompt| (Some(index), Some(tokens), Some(prompt));
    assert_eq!(seen, [event(0, 1, 2), event(1, 1, 1), event(0, 2, 2)]);
    assert_eq!(events.last(), Some(&json!("[DONE]")));

    let body = json!({"text": ["a", "bb"], "sampling_params": {"max_new_tokens": 2}});
    let list = reply_to(SimConfig::default(), "/generate", &body).await.json();
    assert_eq!(list.as_array().map(Vec::len), Some(2));
    assert_eq!(list[1]["meta_info"]["prompt_tokens"], 2);
    let body = json!({"text": "a", "sampling_params": {"max_new_tokens": 0}, "stream": true});
    let events = reply_to(SimConfig::default(), "/generate", &body).await.values();
    assert_eq!((events.len(), &events[0]["text"]), (2, &json!("")));
}

#[tokio::test(start_paused = true)]
async fn completions_stream_deltas() {
    let body = json!({"model": "sim", "prompt": "hello", "max_tokens": 3, "stream": true,
        "best_of": 1, "stream_options": {"include_usage": true}});
    let reply = reply_to(SimConfig::default(), "/v1/completions", &body).await;
    let events = reply.values();
    assert_eq!(events.len(), 5);
    let first = &events[0];
    assert_eq!(first["object"], "text_completion");
    assert_eq!(
        first["choices"],
        json!([{"index": 0, "text": "a", "logprobs": null,
        "finish_reason": null, "matched_stop": null}])
    );
    assert_eq!(first["usage"], Value::Null);
    assert_eq!(events[2]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[3]["choices"], json!([]));
    assert_eq!(
        events[3]["usage"],
        json!({"prompt_tokens": 5, "total_tokens": 8,
        "completion_tokens": 3, "prompt_tokens_details": null, "reasoning_tokens": 0})
    );
    assert_eq!(events[4], "[DONE]");
    assert!(events.iter().take(4).all(|event| event["id"] == first["id"]));
}

#[tokio::test(start_paused = true)]
async fn usage_comes_with_every_event_when_asked_for() {
    let body = json!({"model": "sim", "prompt": "hello", "max_tokens": 2, "stream": true,
        "stream_options": {"include_usage": true, "continuous_usage_stats": true}});
    let events = reply_to(SimConfig::default(), "/v1/completions", &body).await.values();
    let counts: Vec<_> =
        events.iter().filter_map(|event| event["usage"]["completion_tokens"].as_u64()).collect();
    assert_eq!(counts, [1, 2, 2]);
    // And not at all when not.
    let body = json!({"model": "sim", "prompt": "hello", "max_tokens": 2, "stream": true});
    let events = reply_to(SimConfig::default(), "/v1/completions", &body).await.values();
    assert_eq!(events.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn several_choices_take_turns() {
    let body = json!({"model": "sim", "prompt": ["a", "bb"], "n": 2, "max_tokens": 2,
        "stream": true, "stream_options": {"include_usage": true}});
    let events = reply_to(SimConfig::default(), "/v1/completions", &body).await.values();
    let indexes: Vec<_> =
        events.iter().filter_map(|event| event["choices"][0]["index"].as_u64()).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(events[8]["usage"]["prompt_tokens"], 3);
    assert_eq!(events[8]["usage"]["completion_tokens"], 8);
}

#[tokio::test(start_paused = true)]
async fn chat_streams_role_reasoning_content_and_finish() {
    let body = json!({"model": "sim", "messages": [{"role": "user", "content": "hey"}],
        "max_completion_tokens": 4, "stream": true,
        "chat_template_kwargs": {"enable_thinking": true}});
    let config = SimConfig { reasoning_tokens: 1, ..SimConfig::default() };
    let events = reply_to(config, "/v1/chat/completions", &body).await.values();
    let deltas: Vec<_> = events.iter().map(|event| event["choices"][0]["delta"].clone()).collect();
    assert_eq!(deltas[0], json!({"role": "assistant", "content": ""}));
    assert_eq!(deltas[1], json!({"reasoning_content": "a"}));
    assert_eq!(deltas[2], json!({"content": " "}));
    assert_eq!(deltas[5], json!({}));
    assert_eq!(events[5]["choices"][0]["finish_reason"], "length");
    assert_eq!((events.len(), &events[6]), (7, &json!("[DONE]")));
    assert_eq!(events[0]["object"], "chat.completion.chunk");
}

#[tokio::test(start_paused = true)]
async fn a_chat_event_never_mixes_reasoning_and_content() {
    let body = json!({"model": "sim", "messages": [{"role": "user", "content": "hey"}],
        "max_tokens": 4, "stream": true});
    let config = SimConfig { reasoning_tokens: 3, coalesce: 4, ..SimConfig::default() };
    let reply = reply_to(config.clone(), "/v1/chat/completions", &body).await;
    let deltas: Vec<_> =
        reply.values().iter().map(|event| event["choices"][0]["delta"].clone()).collect();
    assert_eq!(deltas[1..3], [json!({"reasoning_content": "a r"}), json!({"content": "i"})]);
    let mut body = body;
    body["stream"] = json!(false);
    let whole = reply_to(config.clone(), "/v1/chat/completions", &body).await.json();
    assert_eq!(
        whole["choices"][0]["message"],
        json!({"role": "assistant", "content": "i",
        "reasoning_content": "a r", "tool_calls": null})
    );
    assert_eq!(whole["usage"]["reasoning_tokens"], 3);
    body["chat_template_kwargs"] = json!({"enable_thinking": false});
    let whole = reply_to(config, "/v1/chat/completions", &body).await.json();
    assert_eq!(whole["choices"][0]["message"]["reasoning_content"], Value::Null);
}

#[tokio::test(start_paused = true)]
async fn tools_are_called_when_a_choice_is_made() {
    let mut body = json!({"model": "sim", "messages": [{"role": "user", "content": "hey"}],
        "max_tokens": 20, "stream": true, "tool_choice": "required",
        "tools": [{"type": "function", "function": {"name": "look_up"}}]});
    let events = reply_to(SimConfig::default(), "/v1/chat/completions", &body).await.values();
    let calls: Vec<_> = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["tool_calls"].get(0).cloned())
        .collect();
    assert_eq!(calls.len(), 20);
    assert_eq!(calls[0]["function"]["name"], "look_up");
    assert!(calls[0]["id"].is_string() && calls[1].get("id").is_none());
    let arguments: String =
        calls.iter().filter_map(|call| call["function"]["arguments"].as_str()).collect();
    assert!(serde_json::from_str::<Value>(&arguments).is_ok(), "{arguments}");
    assert_eq!(events[21]["choices"][0]["finish_reason"], "tool_calls");

    body["stream"] = json!(false);
    let whole = reply_to(SimConfig::default(), "/v1/chat/completions", &body).await.json();
    let call = &whole["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], arguments);
    body["tool_choice"] = json!({"type": "function", "function": {"name": "other"}});
    let refused = reply_to(SimConfig::default(), "/v1/chat/completions", &body).await;
    assert_eq!(refused.status, 400);
    body["tool_choice"] = json!("none");
    let whole = reply_to(SimConfig::default(), "/v1/chat/completions", &body).await.json();
    assert!(whole["choices"][0]["message"]["content"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_reply_is_json_where_a_schema_asks_for_it() {
    let mut body = json!({"model": "sim", "prompt": "hey", "max_tokens": 20, "stream": true,
        "messages": [{"role": "user", "content": "hey"}],
        "structured_outputs": {"json": {"type": "object"}}});
    let config = SimConfig { reasoning_tokens: 5, ..SimConfig::default() };
    let chat = "/v1/chat/completions";
    let events = reply_to(SimConfig::default(), "/v1/completions", &body).await.values();
    let text: String =
        events.iter().filter_map(|event| event["choices"][0]["text"].as_str()).collect();
    let object: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!((text.len(), object["text"].as_str().map(str::len)), (20, Some(9)));
    let events = reply_to(config.clone(), chat, &body).await.values();
    let said: String = events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert!(said.len() == 15 && serde_json::from_str::<Value>(&said).is_ok(), "{said}");

    body["stream"] = json!(false);
    let whole = reply_to(SimConfig::default(), "/v1/completions", &body).await.json();
    assert_eq!(whole["choices"][0]["text"], text);
    let whole = reply_to(config, chat, &body).await.json();
    assert_eq!(whole["choices"][0]["message"]["content"], said);
    for other in [json!({"regex": "a"}), json!(null), json!({"json": null})] {
        body["structured_outputs"] = other;
        let whole = reply_to(SimConfig::default(), "/v1/completions", &body).await.json();
        assert!(
            whole["choices"][0]["text"].as_str().is_some_and(|text| text.starts_with("a river"))
        );
    }
    body["structured_outputs"] = json!({"json": "as text"});
    body["max_tokens"] = json!(10);
    let whole = reply_to(SimConfig::default(), "/v1/completions", &body).await.json();
    assert_eq!(whole["choices"][0]["text"], "{\"text\":\"x", "cut off by its limit");
}

#[tokio::test(start_paused = true)]
async fn cached_tokens_are_told_everywhere() {
    let sim = Sim::new(SimConfig { cache_report: true, ..with_engine(instant_engine()) });
    let mut client = Client::new(&sim).await;
    let prompt = "sixteen bytes.. ".repeat(4);
    let native = json!({"text": prompt, "sampling_params": {"max_new_tokens": 1}}).to_string();
    let cold = client.post("/generate", &native).await.json();
    assert_eq!(cold["meta_info"]["cached_tokens"], 0);
    assert!(cold["meta_info"].get("cached_tokens_details").is_none());
    let warm = client.post("/generate", &native).await.json();
    assert_eq!(warm["meta_info"]["cached_tokens"], 48);
    assert_eq!(warm["meta_info"]["cached_tokens_details"], json!({"device": 48, "host": 0}));

    let body = json!({"model": "sim", "prompt": prompt, "max_tokens": 1, "stream": true,
        "return_cached_tokens_details": true, "stream_options": {"include_usage": true}});
    let events = client.post("/v1/completions", &body.to_string()).await.values();
    assert_eq!(events[1]["choices"], json!([]));
    assert_eq!(events[1]["sglext"], json!({"cached_tokens_details": {"device": 48, "host": 0}}));
    assert_eq!(events[2]["usage"]["prompt_tokens_details"], json!({"cached_tokens": 48}));
    assert_eq!(sim.stats().cached_tokens, 96);
    // Ids are another prompt than the same text.
    let ids: Vec<u8> = prompt.into_bytes();
    let body = json!({"input_ids": ids, "sampling_params": {"max_new_tokens": 1}}).to_string();
    for cached in [0, 48] {
        let reply = client.post("/generate", &body).await.json();
        assert_eq!(reply["meta_info"]["cached_tokens"], cached);
    }
}

#[tokio::test(start_paused = true)]
async fn speculative_decoding_shows_in_the_last_event() {
    let speculative = Some(Speculative { draft_tokens: 3, acceptance: 1.0 });
    let config = with_engine(CostModel { step_us: 1_000.0, speculative, ..instant_engine() });
    let body = json!({"text": "a", "sampling_params": {"max_new_tokens": 9}, "stream": true});
    let events = reply_to(config, "/generate", &body).await.values();
    let counts: Vec<_> = events
        .iter()
        .filter_map(|event| event["meta_info"]["completion_tokens"].as_u64())
        .collect();
    assert_eq!(counts, [1, 5, 9]);
    assert!(events[1]["meta_info"].get("spec_accept_length").is_none());
    let last = &events[2]["meta_info"];
    assert_eq!(
        (last["spec_verify_ct"].as_u64(), last["spec_accept_rate"].as_f64()),
        (Some(2), Some(1.0))
    );
    assert_eq!(last["spec_accept_length"], 4.5);
}

#[tokio::test(start_paused = true)]
async fn early_stops_finish_with_stop_unless_eos_is_ignored() {
    let sim = Sim::new(SimConfig { early_stop: 1.0, ..SimConfig::default() });
    let mut client = Client::new(&sim).await;
    let mut lengths = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let body = r#"{"model": "sim", "prompt": "a", "max_tokens": 50}"#;
        let reply = client.post("/v1/completions", body).await.json();
        assert_eq!(reply["choices"][0]["finish_reason"], "stop");
        lengths.insert(reply["usage"]["completion_tokens"].as_u64());
    }
    assert!(lengths.len() > 5, "{lengths:?}");
    let body = r#"{"model": "sim", "prompt": "a", "max_tokens": 50, "ignore_eos": true}"#;
    let reply = client.post("/v1/completions", body).await.json();
    assert_eq!(reply["usage"]["completion_tokens"], 50);
    assert_eq!(reply["choices"][0]["finish_reason"], "length");
}

#[tokio::test(start_paused = true)]
async fn text_retokenizes_to_its_count() {
    let body = json!({"model": "sim", "prompt": "a", "max_tokens": 1000, "stream": true});
    let events = reply_to(SimConfig::default(), "/v1/completions", &body).await.values();
    let text: String =
        events.iter().filter_map(|event| event["choices"][0]["text"].as_str()).collect();
    assert_eq!((text.len(), text.is_ascii()), (1000, true));
    let config = SimConfig { text: TextStyle::Words, ..SimConfig::default() };
    let body = json!({"model": "sim", "prompt": "a", "max_tokens": 3});
    let reply = reply_to(config, "/v1/completions", &body).await.json();
    assert_eq!(reply["choices"][0]["text"], " a river of");
}

#[tokio::test(start_paused = true)]
async fn embeddings_are_floats_or_base64() {
    let body = json!({"model": "sim", "input": ["ab", "c"]});
    let reply = reply_to(SimConfig::default(), "/v1/embeddings", &body).await.json();
    let vector = reply["data"][1]["embedding"].as_array().expect("a list");
    let norm: f64 = vector.iter().filter_map(Value::as_f64).map(|value| value * value).sum();
    assert!(vector.len() == 8 && (norm - 1.0).abs() < 1e-6);
    assert_eq!(reply["usage"]["prompt_tokens"], 3);
    let body = json!({"model": "sim", "input": [1, 2], "encoding_format": "base64"});
    let reply = reply_to(SimConfig::default(), "/v1/embeddings", &body).await.json();
    assert_eq!(reply["data"][0]["embedding"].as_str().map(str::len), Some(44));
}

#[tokio::test(start_paused = true)]
async fn triton_sends_text_and_nothing_at_the_end() {
    let path = "/v2/models/ensemble/generate_stream";
    let mut body = json!({"text_input": "ab", "max_tokens": 3, "min_length": 3, "stream": true,
        "accumulate_tokens": true});
    let texts = |reply: &str| -> Vec<String> {
        assert!(!reply.contains("[DONE]"), "{reply}");
        let frames = reply.lines().filter_map(|line| line.strip_prefix("data: "));
        let frames = frames.map(|frame| serde_json::from_str::<Value>(frame).expect("JSON"));
        frames.map(|frame| frame["text_output"].as_str().expect("a text").to_owned()).collect()
    };
    let all = texts(&reply_to(SimConfig::default(), path, &body).await.text());
    assert_eq!(all.iter().map(String::len).collect::<Vec<_>>(), [1, 2, 3]);
    body["accumulate_tokens"] = json!(false);
    let pieces = texts(&reply_to(SimConfig::default(), path, &body).await.text());
    assert_eq!((pieces.len(), pieces.concat()), (3, all[2].clone()));
    body["stream"] = json!(false);
    assert_eq!(texts(&reply_to(SimConfig::default(), path, &body).await.text()), all[2..]);
}

#[tokio::test(start_paused = true)]
async fn a_truss_speaks_as_completions_do() {
    let body = json!({"model": "sim", "prompt": "a", "max_tokens": 3});
    let reply = reply_to(SimConfig::default(), "/v1/models/model:predict", &body).await.json();
    assert_eq!(reply["usage"]["completion_tokens"], 3);
}

#[tokio::test(start_paused = true)]
async fn bad_requests_get_an_error_object() {
    let sim =
        Sim::new(SimConfig { strict_model: true, context_tokens: 10, ..SimConfig::default() });
    let mut client = Client::new(&sim).await;
    for (path, body, status, words) in [
        ("/generate", "{", 400, "EOF"),
        ("/generate", "{}", 400, "`text` or `input_ids`"),
        ("/generate", r#"{"text": ""}"#, 400, "empty"),
        ("/generate", r#"{"text": "a", "sampling_params": {"x": 1}}"#, 400, "parameter `x`"),
        ("/generate", r#"{"text": "a", "sampling_params": {"n": 5000}}"#, 400, "sequences"),
        ("/v1/completions", r#"{"prompt": "a"}"#, 400, "`model`"),
        ("/v1/completions", r#"{"model": "sim"}"#, 400, "`prompt`"),
        ("/v1/completions", r#"{"model": "sim", "prompt": "a", "max_tokens": 0}"#, 400, "at least"),
        ("/v1/completions", r#"{"model": "sim", "prompt": "a", "max_tokens": -1}"#, 400, "-1"),
        ("/v1/completions", r#"{"model": "sim", "prompt": "abcdef", "max_tokens": 5}"#, 400, "10"),
        ("/v1/completions", r#"{"model": "other", "prompt": "a"}"#, 404, "`other`"),
        ("/v1/chat/completions", r#"{"model": "sim", "messages": []}"#, 400, "`messages`"),
        ("/v1/embeddings", r#"{"model": "sim"}"#, 400, "`input`"),
        ("/v2/models/ensemble/generate_stream", "{}", 400, "`text_input`"),
        ("/v2/models/ensemble/generate_stream", r#"{"text_input": "a"}"#, 400, "`max_tokens`"),
    ] {
        let reply = client.post(path, body).await;
        let message = reply.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(reply.status, status, "{path} {body}");
        assert!(message.contains(words), "{path} {body}: {message}");
        assert_eq!(reply.json()["error"]["code"], status);
    }
    assert_eq!((sim.stats().refused, sim.stats().requests), (15, 0));
}

#[tokio::test(start_paused = true)]
async fn the_clients_name_for_a_request_is_kept() {
    let sim = Sim::new(SimConfig::default());
    let mut client = Client::new(&sim).await;
    let mut request = post("/v1/completions", r#"{"model": "sim", "prompt": "a", "rid": "body"}"#);
    client.request(request.clone()).await;
    request.headers_mut().insert("x-request-id", "header".parse().expect("a value"));
    client.request(request).await;
    let names: Vec<_> = sim.truth().into_iter().map(|record| record.request_id).collect();
    assert_eq!(names, [Some("body".to_owned()), Some("header".to_owned())]);
}
