//! What is to be known of conversations, beside the numbers of their turns.

use crate::prepare::Prepared;
use serde_json::{Map, Value, json};
use servebench_core::{Prompt, Record};
use servebench_datasets::count_messages;
use servebench_metrics::{Distribution, Measured};
use servebench_tokens::{Tokenizer, TokensError};

/// The records of one conversation, in the order of its turns.
struct Held<'a> {
    /// Turns there were to be.
    turns: usize,
    records: &'a [Record],
}

/// Notes how long the prompts of turns were, which nobody can know before the replies are there: by
/// the server's count, else by the tokenizer's on all that was said.
pub(super) fn count_prompts(
    prepared: &Prepared,
    records: &mut [Record],
    tokenizer: &Tokenizer,
) -> Result<(), TokensError> {
    for (request, sample) in prepared.job.requests.iter().zip(prepared.samples.iter()) {
        let Prompt::Turns(turns) = &sample.prompt else { continue };
        let (first, end) = bounds(records, request.id, request.turns());
        let mut history: Vec<Value> = Vec::new();
        for record in &mut records[first..end] {
            history.extend(
                turns.get((record.id - request.id) as usize).into_iter().flatten().cloned(),
            );
            record.prompt_len = match record.reply.prompt_tokens {
                Some(tokens) => tokens,
                None => count_messages(&history, tokenizer)?,
            };
            history.push(json!({"role": "assistant", "content": record.reply.text}));
        }
    }
    Ok(())
}

/// Adds the keys of conversations to a result, if it was one of them.
pub(super) fn report(
    prepared: &Prepared,
    records: &[Record],
    details: bool,
    extra: &mut Map<String, Value>,
) {
    if prepared.job.requests.iter().all(|request| request.conversation.is_none()) {
        return;
    }
    let held: Vec<Held<'_>> = prepared
        .job
        .requests
        .iter()
        .map(|request| {
            let (first, end) = bounds(records, request.id, request.turns());
            Held { turns: request.turns(), records: &records[first..end] }
        })
        .collect();
    extra.insert("conversations".into(), summary(&held));
    if details {
        let numbered = || held.iter().enumerate();
        let conversations: Vec<usize> =
            numbered().flat_map(|(at, held)| std::iter::repeat_n(at, held.records.len())).collect();
        let turns: Vec<usize> = held.iter().flat_map(|held| 1..=held.records.len()).collect();
        extra.insert("conversation_indices".into(), json!(conversations));
        extra.insert("turn_numbers".into(), json!(turns));
    }
}

/// Where the records with `turns` ids from `id` on are.
fn bounds(records: &[Record], id: u64, turns: usize) -> (usize, usize) {
    let at = |id| records.partition_point(|record| record.id < id);
    (at(id), at(id + turns as u64))
}

fn summary(held: &[Held<'_>]) -> Value {
    let complete = |held: &&Held<'_>| {
        held.records.len() == held.turns && held.records.iter().all(Record::is_success)
    };
    // From the first request's start to the last reply's end, pauses between turns included.
    let mut durations: Vec<f64> = held
        .iter()
        .filter(complete)
        .filter_map(|held| {
            let (first, last) = (held.records.first()?, held.records.last()?);
            Some(Measured::from(last).end()?.secs_since(first.dispatched))
        })
        .collect();
    let most = held.iter().map(|held| held.turns).max().unwrap_or(0);
    let turn = |at: usize| {
        let records: Vec<&Record> = held.iter().filter_map(|held| held.records.get(at)).collect();
        let succeeded = || records.iter().filter(|record| record.is_success());
        let measured = || succeeded().map(|record| Measured::from(*record));
        let mut ttfts: Vec<f64> = measured().filter_map(|turn| turn.ttft()).collect();
        let mut latencies: Vec<f64> = measured().filter_map(|turn| turn.latency()).collect();
        let waits = records.iter().map(|record| Measured::from(*record).queue_wait());
        let mut waits: Vec<f64> = waits.collect();
        let mut inputs: Vec<f64> = succeeded().map(|record| f64::from(record.prompt_len)).collect();
        json!({
            "turn": at + 1,
            "requests": records.len(),
            "failed": records.len() - succeeded().count(),
            "input_tokens": spread(&mut inputs, 1.0),
            "ttft_ms": spread(&mut ttfts, 1e3),
            "e2e_ms": spread(&mut latencies, 1e3),
            "queue_ms": spread(&mut waits, 1e3),
        })
    };
    json!({
        "count": held.len(),
        "completed": held.iter().filter(complete).count(),
        "duration_ms": spread(&mut durations, 1e3),
        "turns": (0..most).map(turn).collect::<Vec<_>>(),
    })
}

fn spread(samples: &mut [f64], factor: f64) -> Value {
    let spread = Distribution::of(samples).map(|found| found.scaled(factor));
    json!(spread.map(|found| json!({
        "mean": found.mean, "p50": found.median, "p90": found.p90, "p99": found.p99,
        "max": found.max,
    })))
}
