//! `/v1/embeddings`, `/pooling`, `/v1/rerank`: the same unit vector or score for every input, after the
//! time a prefill takes.

use super::generate::{Measured, check_model, measure_with, pace};
use super::{Call, SimBody, reply};
use crate::engine::Job;
use crate::request::{EmbeddingsBody, Prompt};
use crate::state::Ticket;
use crate::truth::TruthRecord;
use crate::wire::{ApiError, Lane};
use crate::work::Work;
use http::{HeaderValue, Response};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// What is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    Embeddings,
    Pooled,
    Ranking,
}

/// A prompt and the images that stand before it.
type Row<'a> = (Prompt<'a>, Vec<Cow<'a, str>>);

pub(super) async fn embed(
    call: &Call<'_>,
    answers: Answers,
) -> Result<Response<SimBody>, ApiError> {
    let mut body: EmbeddingsBody<'_> = serde_json::from_slice(&call.body)
        .map_err(|error| ApiError::bad_request(error.to_string()))?;
    let model = body.model.take().ok_or_else(|| ApiError::bad_request("`model` is missing"))?;
    check_model(call, Some(model.as_ref()))?;
    let format = body.encoding_format.take().unwrap_or(Cow::Borrowed("float"));
    if !matches!(&*format, "float" | "base64" | "bytes" | "bytes_only") {
        return Err(ApiError::bad_request(format!("unknown encoding_format `{format}`")));
    }
    let request_id = body.rid.take().and_then(|rid| rid.0).map(Cow::into_owned);
    let context = call.live.config.context_tokens;
    let cut = body.truncate_prompt_tokens.take().map(|most| u32::try_from(most).unwrap_or(context));
    let texts = body.documents.clone().unwrap_or_default();
    let rows = rows(answers, body)?;
    let measured = rows.iter().map(|(prompt, images)| {
        let measured = measure_with(&call.live, prompt, images);
        Measured { tokens: measured.tokens.min(cut.unwrap_or(u32::MAX)), ..measured }
    });
    let measured: Vec<Measured> = measured.collect();
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
        request_id,
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
    let count = work.lanes.len();
    let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens, "completion_tokens": 0});
    if format.starts_with("bytes") {
        return Ok(bytes(call, count, (&*format == "bytes").then_some(usage)));
    }
    let reply = match answers {
        Answers::Ranking => {
            let row = |(index, text)| json!({"index": index, "document": {"text": text}, "relevance_score": 0.5});
            let results: Vec<Value> = texts.iter().enumerate().map(row).collect();
            json!({"id": "rerank-sim", "model": model, "usage": usage, "results": results})
        }
        Answers::Embeddings | Answers::Pooled => {
            let (object, key) = match answers {
                Answers::Pooled => ("pooling", "data"),
                _ => ("embedding", "embedding"),
            };
            let vector = if format == "base64" {
                json!(base64(&vector(call)))
            } else {
                json!(call.live.embedding)
            };
            let row = |index| json!({"object": object, "index": index, key: vector});
            let data: Vec<Value> = (0..count).map(row).collect();
            json!({"object": "list", "data": data, "model": model, "usage": usage})
        }
    };
    Ok(reply::json(200, reply.to_string()))
}

/// The inputs of a request.
fn rows(answers: Answers, body: EmbeddingsBody<'_>) -> Result<Vec<Row<'_>>, ApiError> {
    let missing = |what| ApiError::bad_request(format!("`{what}` is missing"));
    if answers == Answers::Ranking {
        let query = body.query.ok_or_else(|| missing("query"))?;
        let documents = body.documents.ok_or_else(|| missing("documents"))?;
        // The model reads the query anew with each document.
        let pair = |document| (Prompt::Chat(vec![query.clone(), document]), Vec::new());
        return Ok(documents.into_iter().map(pair).collect());
    }
    if let Some(messages) = body.messages.filter(|_| body.input.is_none()) {
        let (mut texts, mut images) = (Vec::new(), Vec::new());
        for message in messages {
            texts.extend(message.content.texts);
            images.extend(message.content.images);
        }
        return Ok(vec![(Prompt::Chat(texts), images)]);
    }
    let inputs = body.input.ok_or_else(|| missing("input"))?;
    let is_image = body.modality.as_deref() == Some("image");
    let row = |prompt| match prompt {
        Prompt::Text(address) if is_image => (Prompt::Chat(Vec::new()), vec![address]),
        prompt => (prompt, Vec::new()),
    };
    Ok(inputs.rows.into_iter().map(row).collect())
}

/// The vector of one input.
fn vector(call: &Call<'_>) -> Vec<u8> {
    call.live.embedding.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// An answer of bytes, as vLLM has it: what it counts, if asked, stands in a header.
fn bytes(call: &Call<'_>, rows: usize, usage: Option<Value>) -> Response<SimBody> {
    let mut response = reply::bytes(200, vector(call).repeat(rows));
    let metadata = usage.map(|usage| json!({"usage": usage}).to_string());
    if let Some(value) = metadata.and_then(|text| HeaderValue::try_from(text).ok()) {
        response.headers_mut().insert("metadata", value);
    }
    response
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
