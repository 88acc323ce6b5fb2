//! What is asked of the server besides the requests: its models, its tokenizer, its counters.

use super::counters::Counters;
use crate::{Code, Failure};
use serde_json::{Value, json};
use servebench_core::{Prompt, Sample};
use servebench_http::{Caller, Method, TcpConnect};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, LocalSet};

/// How long a lookup may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Prompts that the server tokenizes at a time.
const AT_ONCE: usize = 64;

/// A model as the server lists it: the name that requests use, and what it was loaded from.
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) root: String,
}

/// The first model that the server lists.
pub(super) async fn first_model(caller: &Caller<TcpConnect>) -> Result<Listed, Failure> {
    let url = caller.target().base().url("/v1/models");
    let failed = |error: anyhow::Error| Failure::new(Code::Server, error).hint("give --model");
    let answer = caller.call(Method::GET, "/v1/models", None, LIMIT).await;
    let answer = answer.map_err(|error| {
        let hint = "is the server up? check --base-url, --host and --port; --simulate needs none";
        Failure::new(Code::Server, error).hint(hint)
    })?;
    if !answer.is_ok() {
        let (status, said) = (answer.status, answer.excerpt());
        return Err(failed(anyhow::anyhow!("{url} answered {status}: {said}")));
    }
    let list: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |key: &str| {
        list.pointer(&format!("/data/0/{key}")).and_then(Value::as_str).map(str::to_owned)
    };
    let Some(id) = text("id") else {
        return Err(failed(anyhow::anyhow!("{url} lists no model")));
    };
    let root = text("root").unwrap_or_else(|| id.clone());
    Ok(Listed { id, root })
}

/// The server's counters; `None` where it tells none.
pub(super) async fn counters(caller: &Caller<TcpConnect>) -> Option<Counters> {
    let answer = caller.call(Method::GET, "/metrics", None, LIMIT).await.ok()?;
    let text = String::from_utf8_lossy(&answer.body);
    answer.is_ok().then(|| Counters::read(&text))
}

/// Cuts prompts that are longer by the server's tokenizer than they should be. Returns how many were
/// cut; `None` if the server does not tokenize.
///
/// As in the Python tool the first prompt decides whether the others are looked at.
pub(super) async fn align(
    caller: &Caller<TcpConnect>,
    model: &str,
    samples: &mut [Sample],
) -> Option<usize> {
    let model: Arc<str> = model.into();
    let first = samples.first()?;
    let Prompt::Text(text) = &first.prompt else { return Some(0) };
    if tokenize(caller, &model, text).await?.len() == first.prompt_len as usize {
        return Some(0);
    }
    // A call keeps to its thread.
    Some(LocalSet::new().run_until(cut_longer(caller, model, samples)).await)
}

/// Cuts the prompts that are longer than they should be, and says how many were.
async fn cut_longer(caller: &Caller<TcpConnect>, model: Arc<str>, samples: &mut [Sample]) -> usize {
    let (mut tasks, seats) = (JoinSet::new(), Arc::new(Semaphore::new(AT_ONCE)));
    for (index, sample) in samples.iter().enumerate() {
        let Prompt::Text(text) = &sample.prompt else { continue };
        let (text, length) = (text.clone(), sample.prompt_len as usize);
        let (caller, model, seats) = (caller.clone(), Arc::clone(&model), Arc::clone(&seats));
        tasks.spawn_local(async move {
            let _seat = seats.acquire().await.ok()?;
            let mut tokens = tokenize(&caller, &model, &text).await?;
            if tokens.len() <= length {
                return None;
            }
            tokens.truncate(length);
            Some((index, detokenize(&caller, &model, &tokens).await?))
        });
    }
    let mut cut = 0;
    while let Some(done) = tasks.join_next().await {
        // One that fails keeps its prompt.
        if let Ok(Some((index, text))) = done {
            samples[index].prompt = Prompt::Text(text);
            cut += 1;
        }
    }
    cut
}

async fn tokenize(caller: &Caller<TcpConnect>, model: &str, text: &str) -> Option<Vec<Value>> {
    let body = json!({"model": model, "prompt": text, "add_special_tokens": false});
    let mut answer = post(caller, "/tokenize", &body).await?;
    match answer.get_mut("tokens")?.take() {
        Value::Array(tokens) => Some(tokens),
        _ => None,
    }
}

async fn detokenize(caller: &Caller<TcpConnect>, model: &str, tokens: &[Value]) -> Option<String> {
    let answer = post(caller, "/detokenize", &json!({"model": model, "tokens": tokens})).await?;
    answer.get("prompt")?.as_str().map(str::to_owned)
}

async fn post(caller: &Caller<TcpConnect>, path: &str, body: &Value) -> Option<Value> {
    let body = body.to_string().into();
    let answer = caller.call(Method::POST, path, Some(body), LIMIT).await.ok()?;
    answer.is_ok().then(|| serde_json::from_slice(&answer.body).ok())?
}
