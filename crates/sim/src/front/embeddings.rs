//! `/v1/embeddings`: the same unit vector for every input, after the time a prefill takes.

use super::generate::{check_model, measure, pace};
use super::{Call, SimBody, reply};
use crate::engine::Job;
use crate::request::EmbeddingsBody;
use crate::state::Ticket;
use crate::truth::TruthRecord;
use crate::wire::{ApiError, Lane};
use crate::work::Work;
use http::Response;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) async fn embed(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    let body: EmbeddingsBody<'_> = serde_json::from_slice(&call.body)
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    let model = body.model.ok_or_else(|| ApiError::bad_request("`model` is missing"))?;
    check_model(call, Some(model.as_ref()))?;
    let inputs = body.input.ok_or_else(|| ApiError::bad_request("`input` is missing"))?;
    let vector = match body.encoding_format.as_deref() {
        None | Some("float") => json!(call.live.embedding),
        Some("base64") => {
            let bytes: Vec<u8> =
                call.live.embedding.iter().flat_map(|value| value.to_le_bytes()).collect();
            json!(base64(&bytes))
        }
        Some(other) => {
            return Err(ApiError::bad_request(format!("unknown encoding_format `{other}`")));
        }
    };
    let measured: Vec<_> = inputs.rows.iter().map(|prompt| measure(&call.live, prompt)).collect();
    let context = call.live.config.context_tokens;
    if measured.iter().any(|prompt| prompt.tokens == 0 || prompt.tokens > context) {
        let message = format!("every input must have 1 to {context} tokens");
        return Err(ApiError::bad_request(message));
    }
    let tokens: u64 = measured.iter().map(|prompt| u64::from(prompt.tokens)).sum();
    let lanes = (0..).zip(&measured).map(|(index, prompt)| Lane::new(index, prompt.tokens, 0));
    let lanes = lanes.collect();
    let jobs = measured.into_iter().map(|prompt| Job {
        id: call.state.job(),
        prompt_tokens: prompt.tokens,
        output_tokens: 0,
        blocks: prompt.blocks,
    });
    let pace = pace(call, jobs)?;
    let record = TruthRecord {
        id: call.state.number(),
        request_id: body.rid.and_then(|rid| rid.0).map(std::borrow::Cow::into_owned),
        path: call.path.to_owned(),
        received_ns: call.state.nanos(call.received),
        prompt_tokens: tokens,
        ..TruthRecord::default()
    };
    let limit = call.live.config.truth_limit;
    let ticket = Ticket::new(Arc::clone(call.state), call.received, limit, record);
    let mut work = Work { lanes, pace, ticket };
    work.complete().await;
    work.ticket.set_finished(true);
    let data: Vec<Value> = (0..work.lanes.len())
        .map(|index| json!({"object": "embedding", "index": index, "embedding": vector}))
        .collect();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0});
    let reply = json!({"object": "list", "data": data, "model": model, "usage": usage});
    Ok(reply::json(200, reply.to_string()))
}

/// RFC 4648 base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place <= group.len() {
                out.push(char::from(ALPHABET[(bits >> (18 - 6 * place) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn base64_matches_the_rfc() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, encoded) in cases {
            assert_eq!(super::base64(plain.as_bytes()), encoded);
        }
    }
}
