//! Everything that is not generation.

use crate::client::{Client, ms, now, post};
use serde_json::{Value, json};
use servebench_sim::{CostModel, Sim, SimConfig, Timing};

fn canned(ttft: u64) -> Sim {
    Sim::new(SimConfig { timing: Timing::canned(ms(ttft), ms(0)), ..SimConfig::default() })
}

const REQUEST: &str = r#"{"text": "a", "sampling_params": {"max_new_tokens": 1}}"#;

#[tokio::test(start_paused = true)]
async fn a_flush_needs_an_idle_server_or_patience() {
    let sim = canned(100);
    let mut busy = Client::new(&sim).await;
    let (mut one, mut two) = (Client::new(&sim).await, Client::new(&sim).await);
    assert_eq!(one.post("/flush_cache", "").await.status, 200);
    assert_eq!(one.get("/flush_cache?timeout=5").await.status, 200);
    let checks = async {
        tokio::time::sleep(ms(10)).await;
        let refused = one.post("/flush_cache", "").await;
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("not idle"), "{}", refused.text());
        let late = one.post("/flush_cache?timeout=0.02", "").await;
        assert_eq!((late.status, late.ended_at), (400, ms(20)));
        let waiting = one.post("/flush_cache?timeout=60.0", "");
        let second = async {
            tokio::time::sleep(ms(1)).await;
            two.post("/flush_cache?timeout=60.0", "").await
        };
        let (waited, second) = tokio::join!(waiting, second);
        assert_eq!((waited.status, waited.ended_at), (200, ms(70)));
        assert_eq!((second.status, second.ended_at), (400, ms(0)));
        assert!(second.text().contains("another flush"));
    };
    tokio::join!(busy.post("/generate", REQUEST), checks);
    assert_eq!(one.post("/flush_cache?timeout=-1", "").await.status, 422);
    assert_eq!(one.post("/flush_cache?timeout=soon", "").await.status, 422);
}

#[tokio::test(start_paused = true)]
async fn a_flush_whose_client_leaves_makes_way() {
    let sim = canned(1_000);
    let (mut busy, mut one) = (Client::new(&sim).await, Client::new(&sim).await);
    let checks = async {
        tokio::time::sleep(ms(1)).await;
        let left = tokio::time::timeout(ms(10), one.post("/flush_cache?timeout=60", "")).await;
        assert!(left.is_err());
        drop(one);
        tokio::time::sleep(ms(1)).await;
        let reply = Client::new(&sim).await.post("/flush_cache?timeout=60", "").await;
        assert_eq!(reply.status, 200);
    };
    tokio::join!(busy.post("/generate", REQUEST), checks);
}

#[tokio::test(start_paused = true)]
async fn flushing_empties_the_prefix_cache() {
    let sim =
        Sim::new(SimConfig { timing: Timing::Engine(CostModel::tiny()), ..SimConfig::default() });
    let mut client = Client::new(&sim).await;
    let body = json!({"text": "x".repeat(100), "sampling_params": {"max_new_tokens": 1}});
    let body = body.to_string();
    let mut cached = Vec::new();
    for flush in [None, None, Some("/flush_cache"), Some("/reset_prefix_cache"), None] {
        if let Some(path) = flush {
            assert_eq!(client.post(path, "").await.status, 200);
        }
        let reply = client.post("/generate", &body).await.json();
        cached.push(reply["meta_info"]["cached_tokens"].as_u64());
    }
    assert_eq!(cached, [Some(0), Some(96), Some(0), Some(0), Some(96)]);
}

#[tokio::test(start_paused = true)]
async fn a_profile_is_started_and_stopped_once() {
    let sim = canned(0);
    let mut client = Client::new(&sim).await;
    assert_eq!(client.post("/stop_profile", "{}").await.status, 500);
    let started = client.post("/start_profile", r#"{"num_steps": null}"#).await;
    assert_eq!((started.status, started.text().as_str()), (200, "Start profiling.\n"));
    let again = client.get("/start_profile").await;
    assert_eq!(again.status, 500);
    assert!(again.text().contains("already in progress"), "{}", again.text());
    let stopped = client.get("/stop_profile").await;
    assert_eq!(stopped.text(), "Stop profiling. This will take some time.\n");
    assert_eq!(client.post("/start_profile", r#"{"activities": "CPU"}"#).await.status, 422);
}

#[tokio::test(start_paused = true)]
async fn a_profile_of_some_steps_stops_by_itself() {
    let sim =
        Sim::new(SimConfig { timing: Timing::Engine(CostModel::tiny()), ..SimConfig::default() });
    let mut client = Client::new(&sim).await;
    assert_eq!(client.post("/start_profile", r#"{"num_steps": "3"}"#).await.status, 200);
    assert_eq!(client.get("/sim/stats").await.json()["profiling"], true);
    let body = r#"{"text": "a", "sampling_params": {"max_new_tokens": 8}}"#;
    client.post("/generate", body).await;
    let stats = client.get("/sim/stats").await.json();
    assert_eq!((&stats["profiling"], &stats["steps"]), (&json!(false), &json!(8)));
    assert_eq!(client.post("/stop_profile", "").await.status, 500);
    assert_eq!(client.post("/start_profile", "").await.status, 200);
}

/// The names of the steps in a trace file.
fn steps_in(path: &std::path::Path) -> Vec<String> {
    let file =
        std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let trace: Value =
        serde_json::from_reader(flate2::read::GzDecoder::new(file)).expect("a trace is JSON");
    let events = trace["traceEvents"].as_array().expect("events");
    let spans = events.iter().filter(|event| event["ph"] == "X");
    let name = |span: &Value| span["name"].as_str().expect("a name").to_owned();
    spans.inspect(|span| assert!(span["dur"].as_f64() > Some(0.0), "{span}")).map(name).collect()
}

#[tokio::test(start_paused = true)]
async fn a_profile_leaves_a_trace_of_its_steps_where_that_is_wanted() {
    let folder = tempfile::tempdir().expect("a folder");
    let timing = Timing::Engine(CostModel::tiny());
    let sim = Sim::new(SimConfig { timing, profile_traces: true, ..SimConfig::default() });
    let mut client = Client::new(&sim).await;
    let generate = r#"{"text": "abc", "sampling_params": {"max_new_tokens": 8}}"#;
    let below = |name: &str| folder.path().join(name);

    let start = json!({"output_dir": below("a"), "profile_id": "7", "num_steps": 3});
    assert_eq!(client.post("/start_profile", &start.to_string()).await.status, 200);
    client.post("/generate", generate).await;
    let steps = steps_in(&below("a/7-TP-0.trace.json.gz"));
    assert_eq!(steps, ["step[EXTEND bs=1 toks=3]", "step[DECODE bs=1]", "step[DECODE bs=1]"]);

    let start = json!({"output_dir": below("b"), "profile_id": "8", "num_steps": 2,
        "profile_by_stage": true, "profile_prefix": "p"});
    assert_eq!(client.post("/start_profile", &start.to_string()).await.status, 200);
    client.post("/generate", generate).await;
    assert_eq!(steps_in(&below("b/p-8-TP-0-EXTEND.trace.json.gz")).len(), 1);
    assert_eq!(steps_in(&below("b/p-8-TP-0-DECODE.trace.json.gz")).len(), 2);

    let start = json!({"output_dir": below("c"), "profile_id": "9", "merge_profiles": true});
    assert_eq!(client.post("/start_profile", &start.to_string()).await.status, 200);
    client.post("/generate", generate).await;
    assert!(!below("c").exists(), "it is still running");
    assert_eq!(client.post("/stop_profile", "{}").await.status, 200);
    for name in ["c/9-TP-0.trace.json.gz", "c/merged-9.trace.json.gz"] {
        assert_eq!(steps_in(&below(name)).len(), 8);
    }

    // The network cannot make a server write that was not told to.
    let sim = Sim::new(SimConfig::default());
    let mut client = Client::new(&sim).await;
    assert_eq!(client.post("/sim/config", r#"{"profile_traces": true}"#).await.status, 400);
    let start = json!({"output_dir": below("d")});
    assert_eq!(client.post("/start_profile", &start.to_string()).await.status, 200);
    assert_eq!(client.post("/stop_profile", "{}").await.status, 200);
    assert!(!below("d").exists());
}

#[tokio::test(start_paused = true)]
async fn the_server_describes_itself() {
    let sim = Sim::new(SimConfig {
        model: "org/na\"me".to_owned(),
        timing: Timing::Engine(CostModel::small()),
        ..SimConfig::default()
    });
    let mut client = Client::new(&sim).await;
    let models = client.get("/v1/models").await.json();
    assert_eq!(models["data"][0]["id"], "org/na\"me");
    for path in ["/model_info", "/get_model_info"] {
        assert_eq!(client.get(path).await.json()["tokenizer_path"], "org/na\"me");
    }
    for path in ["/server_info", "/get_server_info"] {
        let info = client.get(path).await.json();
        let state = &info["internal_states"][0];
        assert_eq!(state["effective_max_running_requests_per_dp"], 512);
        assert_eq!(state["memory_usage"]["token_capacity"], 400_000);
        assert!(state.get("avg_spec_accept_length").is_none());
    }
    for path in ["/health", "/health_generate", "/ping"] {
        assert_eq!((client.get(path).await.status, client.post(path, "").await.status), (200, 200));
    }
}

#[tokio::test(start_paused = true)]
async fn metrics_count_in_both_dialects() {
    let sim = Sim::new(SimConfig { model: "a\"b".to_owned(), ..SimConfig::default() });
    let mut client = Client::new(&sim).await;
    client.post("/generate", REQUEST).await;
    client.post("/v1/completions", r#"{"model": "m", "prompt": "abc", "max_tokens": 4}"#).await;
    let text = client.get("/metrics").await.text();
    for line in [
        "sglang:prompt_tokens_total{model_name=\"a\\\"b\"} 4",
        "sglang:generation_tokens_total{model_name=\"a\\\"b\"} 5",
        "sglang:cached_tokens_total{model_name=\"a\\\"b\"} 0",
        "vllm:prompt_tokens_total{engine=\"0\",model_name=\"a\\\"b\"} 4",
        "vllm:generation_tokens_total{engine=\"0\",model_name=\"a\\\"b\"} 5",
        "vllm:num_requests_running{engine=\"0\",model_name=\"a\\\"b\"} 0",
    ] {
        assert!(text.lines().any(|have| have == line), "{line}\n{text}");
    }
    assert!(!text.contains("spec_decode"));
}

#[tokio::test(start_paused = true)]
async fn unknown_paths_and_methods_are_told_apart() {
    let mut client = Client::new(&canned(0)).await;
    let missing = client.get("/v1/nothing").await;
    assert_eq!((missing.status, missing.json()["error"]["code"].as_u64()), (404, Some(404)));
    let wrong = client.get("/generate").await;
    assert_eq!((wrong.status, wrong.headers["allow"].as_bytes()), (405, &b"POST"[..]));
    assert_eq!(client.post("/server_info", "").await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_asked_for_where_it_matters() {
    let sim = Sim::new(SimConfig { api_key: Some("secret".to_owned()), ..SimConfig::default() });
    let mut client = Client::new(&sim).await;
    for path in ["/generate", "/v1/completions", "/flush_cache", "/start_profile"] {
        assert_eq!(client.post(path, REQUEST).await.status, 401, "{path}");
    }
    for path in ["/v1/models", "/server_info"] {
        assert_eq!(client.get(path).await.status, 401, "{path}");
    }
    for path in ["/health", "/metrics", "/sim/stats", "/sim/config"] {
        let reply = client.get(path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert!(!reply.text().contains("secret"));
    }
    for (value, status) in
        [("Bearer secret", 200), ("bearer secret", 200), ("Bearer secre", 401), ("secret", 401)]
    {
        let mut request = post("/generate", REQUEST);
        request.headers_mut().insert("authorization", value.parse().expect("a value"));
        assert_eq!(client.request(request).await.status, status, "{value}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_configuration_changes_field_by_field() {
    let sim = canned(0);
    let mut client = Client::new(&sim).await;
    let changed = client.post("/sim/config", r#"{"model": "new", "seed": 7}"#).await;
    assert_eq!(changed.status, 200);
    assert_eq!((sim.config().model.as_str(), sim.config().seed), ("new", 7));
    for (body, words) in [
        (r#"{"modle": "x"}"#, "modle"),
        (r#"{"coalesce": 0}"#, "coalesce"),
        (r#"{"timing": {"canned": {"ttft_ms": -1, "itl_ms": 0}}}"#, "milliseconds"),
        (r#"{"timing": {"engine": {"chunk_tokens": 0}}}"#, "chunk_tokens"),
        (r#"{"faults": [{"action": {"explode": {}}}]}"#, "fault rule 1"),
        ("[]", "map"),
    ] {
        let refused = client.post("/sim/config", body).await;
        assert_eq!(refused.status, 400, "{body}");
        assert!(refused.text().contains(words), "{body}: {}", refused.text());
    }
    assert_eq!(client.get("/sim/config").await.json()["model"], "new");
}

#[tokio::test(start_paused = true)]
async fn truth_and_counts_are_there_to_read_and_reset() {
    let sim = canned(30);
    let mut client = Client::new(&sim).await;
    tokio::time::sleep(ms(12)).await;
    let start = now();
    client.post("/generate", REQUEST).await;
    let truth = client.get("/sim/truth").await.json();
    assert_eq!(truth[0]["received_ns"], 12_000_000);
    assert_eq!(truth[0]["sent"], json!([{"at_ns": 42_000_000, "choice": 0, "tokens": 1}]));
    assert_eq!(sim.truth()[0].received_ns, (start - sim.epoch()).as_nanos() as u64);
    let stats = client.get("/sim/stats").await.json();
    assert_eq!(
        (&stats["requests"], &stats["finished"], &stats["peak_in_flight"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert_eq!(client.post("/sim/reset", "").await.status, 200);
    assert_eq!(client.get("/sim/truth").await.json(), json!([]));
    assert_eq!((sim.stats().requests, sim.stats().open_connections), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_too_long_is_refused() {
    let sim = Sim::new(SimConfig { max_body_bytes: 100, ..SimConfig::default() });
    let body = json!({"text": "x".repeat(200)}).to_string();
    assert_eq!(Client::new(&sim).await.post("/generate", &body).await.status, 413);
}
