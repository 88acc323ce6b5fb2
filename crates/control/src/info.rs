//! What servers tell about themselves.

use serde_json::Value;

/// The mean accepted length of speculative decoding in a `/server_info` answer.
///
/// SGLang reports it per data-parallel rank; a router of disaggregated servers wraps the decode
/// servers' answers in a list. The first of each is read. It is the server's average since its last
/// flush, not this run's.
pub fn accept_length(info: &Value) -> Option<f64> {
    let server = info.get("decode").and_then(|decode| decode.get(0)).unwrap_or(info);
    server.get("internal_states")?.get(0)?.get("avg_spec_accept_length")?.as_f64()
}

/// The tokenizer a server uses, by its `/model_info` answer.
pub(crate) fn tokenizer_path(info: &Value) -> Option<String> {
    ["tokenizer_path", "model_path"]
        .iter()
        .find_map(|key| info.get(key)?.as_str().filter(|path| !path.is_empty()))
        .map(str::to_owned)
}
