//! Fuzz bodies, shared by the fuzz targets and the property tests. Each panics where a law breaks.

use crate::{CostModel, Sim, SimConfig, Timing, parse_faults};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const PATHS: [&str; 18] = [
    "/generate",
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/embeddings",
    "/v1/responses",
    "/v1/audio/transcriptions",
    "/pooling",
    "/v1/rerank",
    "/v1/models/model:predict",
    "/v2/models/ensemble/generate_stream",
    "/start_profile",
    "/stop_profile",
    "/flush_cache?timeout=0.001",
    "/sim/config",
    "/server_info",
    "/metrics",
    "/health",
    "/nothing",
];

/// A server that answers at once and never at length.
fn server(with_engine: bool) -> Sim {
    let cost = CostModel {
        step_us: 0.0,
        prefill_token_us: 0.0,
        decode_token_us: 0.0,
        context_token_us: 0.0,
        kv_tokens: 128,
        ..CostModel::tiny()
    };
    let timing = if with_engine { Timing::Engine(cost) } else { Timing::default() };
    Sim::new(SimConfig { timing, context_tokens: 64, ..SimConfig::default() })
}

/// Sends bytes over an in-memory connection, then perhaps its end, and reads until the server
/// closes it.
fn exchange(sim: &Sim, bytes: &[u8], end: bool) -> Vec<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let Ok(runtime) = runtime else { return Vec::new() };
    runtime.block_on(async {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (mut read, mut write) = tokio::io::split(near);
        let mut reply = Vec::new();
        let send = async {
            // Fails when the server has already closed: it has said what it had to say.
            drop(write.write_all(bytes).await);
            if end {
                drop(write.shutdown().await);
            }
        };
        let talk = async { tokio::join!(send, read.read_to_end(&mut reply)).1 };
        let patience = Duration::from_secs(20);
        let both = async { tokio::join!(sim.serve_connection(far), talk) };
        assert!(tokio::time::timeout(patience, both).await.is_ok(), "the server hangs");
        reply
    })
}

/// Whatever body comes to whatever endpoint, there is one complete and valid HTTP answer.
///
/// The first byte chooses the endpoint and the timing, the rest is the body.
pub fn request_bodies(data: &[u8]) {
    let Some((&choice, body)) = data.split_first() else { return };
    let path = PATHS.get(usize::from(choice & 0x7f) % PATHS.len()).copied().unwrap_or("/");
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: sim\r\nconnection: close\r\ncontent-length: {}\r\n\
         content-type: {}\r\n\r\n",
        body.len(),
        if path.contains("/audio/") {
            "multipart/form-data; boundary=x"
        } else {
            "application/json"
        }
    )
    .into_bytes();
    request.extend_from_slice(body);
    let reply = exchange(&server(choice & 0x80 != 0), &request, false);
    // Only vectors asked for as bytes are no text, and those are as long as they should be.
    let (text, lost) = match String::from_utf8(reply) {
        Ok(text) => (text, false),
        Err(error) => (String::from_utf8_lossy(error.as_bytes()).into_owned(), true),
    };
    assert!(!lost || text.contains("application/octet-stream"), "replies are UTF-8");
    let (head, content) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
    let status: u16 = status.and_then(|code| code.parse().ok()).expect("a status line");
    assert!((200..600).contains(&status), "{head}");
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(have, _)| have.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    if let Some(length) = field("content-length") {
        assert!(lost || length == content.len().to_string(), "{head}");
    } else {
        assert_eq!(field("transfer-encoding"), Some("chunked"), "{head}");
        let done = match path {
            "/v2/models/ensemble/generate_stream" => "\"}",
            "/v1/responses" => "}}}",
            _ => "data: [DONE]",
        };
        assert!(content.ends_with(&format!("{done}\n\n\r\n0\r\n\r\n")), "{content}");
    }
    if field("content-type") == Some("application/json") {
        serde_json::from_str::<serde_json::Value>(content).expect("the answer is JSON");
    }
}

/// Whatever bytes come over a connection, the server survives and the connection ends.
pub fn connections(data: &[u8]) {
    exchange(&server(false), data, true);
}

/// Whatever text is a fault script or a configuration, it is read or refused, and what was read
/// is written and read again as the same.
pub fn settings(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(rules) = parse_faults(text) {
        let again = serde_json::to_string(&rules).expect("rules are JSON");
        assert_eq!(parse_faults(&again).expect("rules are read again"), rules);
    }
    let default = SimConfig::default();
    if let Ok(config) = default.patched(data) {
        let again = serde_json::to_vec(&config).expect("a configuration is JSON");
        assert_eq!(default.patched(&again).expect("it is read again"), config);
    }
}
