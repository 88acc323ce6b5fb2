//! Exact times, in virtual time.

use crate::client::{Client, ms, now, post};
use servebench_sim::{CostModel, Sim, SimConfig, Timing};
use std::time::Duration;

const STREAM: &str =
    r#"{"text": "0123456789", "sampling_params": {"max_new_tokens": 4}, "stream": true}"#;

fn canned(ttft: u64, itl: u64) -> SimConfig {
    SimConfig { timing: Timing::canned(ms(ttft), ms(itl)), ..SimConfig::default() }
}

#[tokio::test(start_paused = true)]
async fn canned_tokens_come_exactly_when_due() {
    let sim = Sim::new(canned(250, 10));
    let mut client = Client::new(&sim).await;
    let reply = client.post("/generate", STREAM).await;
    assert_eq!(reply.times(), [ms(250), ms(260), ms(270), ms(280)]);
    assert_eq!(reply.head_at, Duration::ZERO);
    let truth = sim.truth();
    let times: Vec<u64> =
        truth[0].token_times(0).iter().map(|at| at - truth[0].received_ns).collect();
    assert_eq!(times, [250_000_000, 260_000_000, 270_000_000, 280_000_000]);
    assert!(!truth[0].aborted);

    let whole = client.post("/generate", &STREAM.replace("true", "false")).await;
    assert_eq!(
        (whole.head_at, whole.json()["meta_info"]["completion_tokens"].as_u64()),
        (ms(280), Some(4))
    );
}

#[tokio::test(start_paused = true)]
async fn coalesced_tokens_wait_for_each_other() {
    let sim = Sim::new(SimConfig { coalesce: 3, ..canned(50, 10) });
    let mut client = Client::new(&sim).await;
    let reply = client.post("/generate", STREAM).await;
    assert_eq!(reply.times(), [ms(70), ms(80)]);
    let counts: Vec<_> = reply
        .values()
        .iter()
        .filter_map(|event| event["meta_info"]["completion_tokens"].as_u64())
        .collect();
    assert_eq!(counts, [3, 4]);
    // A request can ask for the same by itself.
    let sim = Sim::new(canned(50, 10));
    let body = STREAM.replace("\"max_new_tokens\"", "\"stream_interval\": 2, \"max_new_tokens\"");
    let reply = Client::new(&sim).await.post("/generate", &body).await;
    assert_eq!(reply.times(), [ms(60), ms(80)]);
}

#[tokio::test(start_paused = true)]
async fn without_delay_a_reply_is_one_piece_unless_told_otherwise() {
    let sim = Sim::new(SimConfig::default());
    let reply = Client::new(&sim).await.post("/generate", STREAM).await;
    assert_eq!((reply.pieces.len(), reply.values().len()), (1, 5));
    assert_eq!(reply.ended_at, Duration::ZERO);
    let sim = Sim::new(SimConfig { yield_each: true, ..SimConfig::default() });
    let reply = Client::new(&sim).await.post("/generate", STREAM).await;
    assert_eq!((reply.pieces.len(), reply.values().len()), (4, 5));
}

#[tokio::test(start_paused = true)]
async fn timing_changes_while_running() {
    let sim = Sim::new(canned(100, 10));
    let mut client = Client::new(&sim).await;
    let change = r#"{"timing": {"canned": {"ttft_ms": 7, "itl_ms": 2}}, "coalesce": 2}"#;
    assert_eq!(client.post("/sim/config", change).await.status, 200);
    let reply = client.post("/generate", STREAM).await;
    assert_eq!(reply.times(), [ms(9), ms(13)]);
}

/// Prefill 1 ms a token, a step 1 ms, decoding free.
fn engine() -> CostModel {
    CostModel {
        step_us: 1_000.0,
        prefill_token_us: 1_000.0,
        decode_token_us: 0.0,
        context_token_us: 0.0,
        chunk_tokens: 10,
        ..CostModel::tiny()
    }
}

fn with_engine(cost: CostModel) -> Sim {
    Sim::new(SimConfig { timing: Timing::Engine(cost), ..SimConfig::default() })
}

#[tokio::test(start_paused = true)]
async fn the_engine_decides_when_tokens_come() {
    let sim = with_engine(engine());
    let reply = Client::new(&sim).await.post("/generate", STREAM).await;
    assert_eq!(reply.times(), [ms(11), ms(12), ms(13), ms(14)]);
}

#[tokio::test(start_paused = true)]
async fn requests_slow_each_other_down() {
    let sim = with_engine(engine());
    let (mut first, mut second) = (Client::new(&sim).await, Client::new(&sim).await);
    // The second arrives in the first one's prefill (0 to 11 ms) and has its own from 11 to 22 ms,
    // a step that also gives the first its second token.
    let late = async {
        tokio::time::sleep(ms(5)).await;
        second
            .post(
                "/v1/completions",
                r#"{"model": "sim", "prompt": "abcdefghij",
            "max_tokens": 2, "stream": true}"#,
            )
            .await
    };
    let (one, two) = tokio::join!(first.post("/generate", STREAM), late);
    assert_eq!(one.times(), [ms(11), ms(22), ms(23), ms(24)]);
    assert_eq!(two.times(), [ms(22 - 5), ms(23 - 5)]);
}

#[tokio::test(start_paused = true)]
async fn a_full_memory_makes_requests_wait() {
    let sim = with_engine(CostModel { kv_tokens: 20, block_tokens: 0, ..engine() });
    let (mut first, mut second) = (Client::new(&sim).await, Client::new(&sim).await);
    let metrics = async {
        tokio::time::sleep(ms(3)).await;
        Client::new(&sim).await.get("/metrics").await.text()
    };
    let late = async {
        tokio::time::sleep(ms(1)).await;
        second.post("/generate", STREAM).await
    };
    let (one, two, metrics) = tokio::join!(first.post("/generate", STREAM), late, metrics);
    assert_eq!((one.ended_at, two.times()[0]), (ms(14), ms(14 + 11 - 1)));
    assert!(metrics.contains("sglang:num_running_reqs{model_name=\"sim\"} 1\n"), "{metrics}");
    assert!(metrics.contains("vllm:num_requests_waiting{engine=\"0\",model_name=\"sim\"} 1\n"));
    let refused = first.post("/generate", &STREAM.replace(": 4", ": 11")).await;
    assert_eq!(refused.status, 400);
    assert!(refused.text().contains("21 tokens of KV memory"), "{}", refused.text());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_frees_its_place() {
    let sim = with_engine(CostModel { max_running: 1, ..engine() });
    let mut client = Client::new(&sim).await;
    let long = STREAM.replace(": 4", ": 10000");
    let left = tokio::time::timeout(ms(30), client.post("/generate", &long)).await;
    assert!(left.is_err());
    drop(client);
    let start = now();
    let reply = Client::new(&sim).await.request(post("/generate", STREAM)).await;
    assert_eq!(reply.values().len(), 5);
    assert!(now() - start < ms(20), "{:?}", now() - start);
    let truth = sim.truth();
    assert_eq!(truth.iter().filter(|record| record.aborted).count(), 1);
    assert_eq!((sim.stats().aborted, sim.stats().in_flight), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn embeddings_take_a_prefill() {
    let sim = with_engine(engine());
    let body = r#"{"model": "sim", "input": "0123456789"}"#;
    assert_eq!(Client::new(&sim).await.post("/v1/embeddings", body).await.head_at, ms(11));
    let sim = Sim::new(canned(40, 10));
    assert_eq!(Client::new(&sim).await.post("/v1/embeddings", body).await.head_at, ms(40));
}
