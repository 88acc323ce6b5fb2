//! The endpoints that vLLM and its neighbours have beside completions and chat.

use crate::client::{Client, Reply, ms, post};
use bytes::Bytes;
use http_body_util::Full;
use serde_json::{Value, json};
use servebench_sim::{Sim, SimConfig};

async fn reply_to(config: SimConfig, path: &str, body: &Value) -> Reply {
    Client::new(&Sim::new(config)).await.post(path, &body.to_string()).await
}

/// The events of a stream with names: each name and its data.
fn named(reply: &Reply) -> Vec<(String, Value)> {
    let text = reply.text();
    let events = text.split_terminator("\n\n").map(|event| {
        let (name, data) = event.split_once('\n').expect("two lines");
        let data = data.strip_prefix("data: ").expect("data");
        let name = name.strip_prefix("event: ").expect("a name").to_owned();
        (name, serde_json::from_str(data).expect("JSON"))
    });
    events.collect()
}

#[tokio::test(start_paused = true)]
async fn responses_are_streams_of_named_events() {
    let body = json!({"model": "sim", "input": "hello", "max_output_tokens": 3, "stream": true});
    let config = SimConfig { reasoning_tokens: 1, ..SimConfig::default() };
    let reply = reply_to(config, "/v1/responses", &body).await;
    let events = named(&reply);
    let names: Vec<&str> = events.iter().map(|(name, _)| &**name).collect();
    let want = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_text.delta",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.completed",
    ];
    assert_eq!(names, want);
    assert!(events.iter().all(|(name, data)| data["type"] == **name));
    assert_eq!((&events[4].1["delta"], &events[6].1["text"]), (&json!(" "), &json!(" r")));
    let response = &events[7].1["response"];
    let usage = json!({"input_tokens": 5, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 8});
    assert_eq!(response["usage"], usage);
    assert_eq!(response["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(response["output"][0]["content"][0]["text"], " r");
}

#[tokio::test(start_paused = true)]
async fn a_response_comes_whole_or_is_refused() {
    let part = json!({"type": "input_text", "text": "hel"});
    let messages = json!([{"role": "user", "content": [part]}, {"role": "user", "content": "lo"}]);
    let body = json!({"model": "sim", "input": messages, "max_output_tokens": 2});
    let whole = reply_to(SimConfig::default(), "/v1/responses", &body).await.json();
    assert_eq!(
        (&whole["object"], &whole["usage"]["input_tokens"]),
        (&json!("response"), &json!(5))
    );
    for body in
        [json!({"model": "sim"}), json!({"model": "sim", "input": ""}), json!({"input": "a"})]
    {
        assert_eq!(reply_to(SimConfig::default(), "/v1/responses", &body).await.status, 400);
    }
}

/// A form with a file and these fields.
fn form(path: &str, file: &str, fields: &[(&str, &str)]) -> http::Request<Full<Bytes>> {
    let mut body = format!(
        "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\n\r\n{file}\r\n"
    );
    for (name, value) in fields {
        let head = format!("Content-Disposition: form-data; name=\"{name}\"");
        body = [&body, "--x\r\n", &head, "\r\n\r\n", value, "\r\n"].concat();
    }
    let mut request = post(path, &(body + "--x--\r\n"));
    let kind = http::HeaderValue::from_static("multipart/form-data; boundary=x");
    request.headers_mut().insert("content-type", kind);
    request
}

#[tokio::test(start_paused = true)]
async fn recordings_are_transcribed() {
    let sim = Sim::new(SimConfig::default());
    let fields = [
        ("model", "sim"),
        ("max_completion_tokens", "2"),
        ("stream", "True"),
        ("stream_include_usage", "true"),
    ];
    let request = form("/v1/audio/transcriptions", &"a".repeat(641), &fields);
    let events = Client::new(&sim).await.request(request).await.values();
    let choices: Vec<_> = events.iter().map(|event| event["choices"][0].clone()).collect();
    assert_eq!(choices[0]["delta"], json!({"content": "a"}));
    assert_eq!(
        (&choices[0]["finish_reason"], &choices[1]["finish_reason"]),
        (&Value::Null, &json!("length"))
    );
    assert_eq!(events[0]["object"], "transcription.chunk");
    // 20 ms for a token.
    assert_eq!(events[2]["usage"]["prompt_tokens"], 2);
    assert_eq!((events.len(), &events[3]), (4, &json!("[DONE]")));
    let whole = form("/v1/audio/translations", "a", &fields[..2]);
    let whole = Client::new(&sim).await.request(whole).await.json();
    assert_eq!((&whole["text"], &whole["usage"]["completion_tokens"]), (&json!("a "), &json!(2)));
    for request in [
        form("/v1/audio/translations", "", &fields),
        form("/v1/audio/translations", "a", &[("max_completion_tokens", "many")]),
        form("/v1/audio/translations", "a", &[]),
        post("/v1/audio/translations", "{}"),
    ] {
        assert_eq!(Client::new(&sim).await.request(request).await.status, 400);
    }
}

#[tokio::test(start_paused = true)]
async fn documents_are_ranked() {
    let body = json!({"model": "sim", "query": "ab", "documents": ["c", "def"]});
    for path in ["/rerank", "/v1/rerank", "/v2/rerank"] {
        let reply = reply_to(SimConfig::default(), path, &body).await.json();
        let results = reply["results"].as_array().expect("results");
        assert_eq!((results.len(), &results[1]["document"]["text"]), (2, &json!("def")));
        assert!(results.iter().all(|result| result["relevance_score"].is_number()));
        // The query is read with each.
        assert_eq!(reply["usage"]["prompt_tokens"], 8);
    }
    let body = json!({"model": "sim", "documents": ["c"]});
    assert_eq!(reply_to(SimConfig::default(), "/rerank", &body).await.status, 400);
}

#[tokio::test(start_paused = true)]
async fn vectors_come_of_messages_and_images() {
    let image = json!({"type": "image_url", "image_url": {"url": "https://a.test/b.png"}});
    let content = json!([{"type": "text", "text": "abc"}, image]);
    let body = json!({"model": "sim", "messages": [{"role": "user", "content": content}]});
    let reply = reply_to(SimConfig::default(), "/v1/embeddings", &body).await.json();
    assert_eq!(
        (reply["data"].as_array().map(Vec::len), &reply["usage"]["prompt_tokens"]),
        (Some(1), &json!(259))
    );
    let body = json!({"model": "sim", "input": "https://a.test/b.png", "modality": "image"});
    let reply = reply_to(SimConfig::default(), "/embeddings", &body).await.json();
    assert_eq!(reply["usage"]["prompt_tokens"], 256);
    let body = json!({"model": "sim", "input": ["ab", "c"]});
    let reply = reply_to(SimConfig::default(), "/pooling", &body).await.json();
    let rows = reply["data"].as_array().expect("rows");
    assert!(rows.len() == 2 && rows.iter().all(|row| row["data"].is_array()), "{reply}");
}

#[tokio::test(start_paused = true)]
async fn long_inputs_are_cut_where_that_is_asked_for() {
    let config = SimConfig { context_tokens: 4, ..SimConfig::default() };
    let body = json!({"model": "sim", "input": "too long"});
    assert_eq!(reply_to(config.clone(), "/v1/embeddings", &body).await.status, 400);
    for (most, tokens) in [(-1, 4), (3, 3)] {
        let body = json!({"model": "sim", "input": "too long", "truncate_prompt_tokens": most});
        let reply = reply_to(config.clone(), "/v1/embeddings", &body).await.json();
        assert_eq!(reply["usage"]["prompt_tokens"], tokens);
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_are_counted_in_a_header() {
    for (format, counted) in [("bytes", true), ("bytes_only", false)] {
        let body = json!({"model": "sim", "input": ["ab", "c"], "encoding_format": format});
        let reply = reply_to(SimConfig::default(), "/v1/embeddings", &body).await;
        assert_eq!(reply.headers["content-type"], "application/octet-stream");
        let metadata = reply.headers.get("metadata").map(|value| value.to_str().expect("ASCII"));
        let usage: Option<Value> = metadata.map(|text| serde_json::from_str(text).expect("JSON"));
        assert_eq!(usage.map(|it| it["usage"]["prompt_tokens"].clone()), counted.then(|| json!(3)));
        assert!(reply.ended_at >= ms(0) && reply.complete);
        let bytes: usize = reply.pieces.iter().map(|(_, piece)| piece.len()).sum();
        assert!(bytes > 0 && bytes.is_multiple_of(2 * size_of::<f32>()), "{bytes}");
    }
}
