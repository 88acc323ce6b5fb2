//! The figures of each request, and the tables made of them.

use super::talks::{Sent, Talk};
use serde::Serialize;
use servebench_core::Record;
use servebench_datasets::vllm::MultiTurnConversation;
use servebench_metrics::Measured;
use servebench_report::vllm::{Series, describe, worthwhile_percentiles};
use servebench_tokens::{Tokenizer, TokensError};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Shortest time to a first token that correcting for the tokens in its piece may give, in milliseconds.
const LEAST_TTFT: f64 = 0.1;
/// Columns of a rule.
pub(super) const WIDTH: usize = 100;

/// One request that succeeded, in the Python script's keys and two of our own.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct RequestStats {
    pub(super) ttft_ms: f64,
    pub(super) tpot_ms: f64,
    pub(super) latency_ms: f64,
    /// Since the start of the run.
    pub(super) start_time_ms: f64,
    /// Messages that were sent, the assistant's included.
    pub(super) input_num_turns: usize,
    pub(super) input_num_tokens: u64,
    pub(super) output_num_tokens: u64,
    pub(super) output_num_chunks: usize,
    pub(super) output_num_first_chunk_tokens: u64,
    /// The part of the input that was there before the last message, which a cache may hold.
    pub(super) approx_cached_percent: f64,
    pub(super) conversation_id: String,
    pub(super) client_id: usize,
    /// By the server's count, chat template and all.
    pub(super) server_input_num_tokens: Option<u32>,
    /// What the server found in its cache, where it says so.
    pub(super) server_cached_num_tokens: Option<u64>,
}

/// What a reply was, in milliseconds and tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reply {
    pub(super) ttft_ms: f64,
    pub(super) latency_ms: f64,
    pub(super) tokens: u64,
    pub(super) first_chunk_tokens: u64,
}

impl Reply {
    /// Time to the first token and time per token after it, by tokens: what the first chunk has of further
    /// tokens is taken from its time.
    pub(super) fn by_tokens(&self) -> (f64, f64) {
        let rest = self.tokens.saturating_sub(self.first_chunk_tokens);
        let tpot = if self.tokens > 1 && rest > 0 {
            (self.latency_ms - self.ttft_ms) / rest as f64
        } else {
            0.0
        };
        let ttft = match self.first_chunk_tokens {
            0 | 1 => self.ttft_ms,
            first => (self.ttft_ms - (first - 1) as f64 * tpot).max(LEAST_TTFT),
        };
        (ttft, tpot)
    }
}

/// The requests that succeeded, in the order in which they were sent.
pub(super) fn requests(
    sent: &[Sent<'_>],
    talks: &[Talk],
    clients: &HashMap<usize, usize>,
    tokenizer: &Tokenizer,
) -> Result<Vec<RequestStats>, TokensError> {
    let messages: Vec<&str> =
        talks.iter().flat_map(|talk| talk.messages.iter().map(String::as_str)).collect();
    let counts = tokenizer.count_batch(&messages, false)?;
    let starts: Vec<usize> = talks
        .iter()
        .scan(0, |next, talk| {
            let start = *next;
            *next += talk.messages.len();
            Some(start)
        })
        .collect();
    let mut stats = Vec::with_capacity(sent.len());
    for Sent { talk, turn, record } in sent.iter().filter(|sent| sent.record.is_success()) {
        let measured = Measured::from(*record);
        let (Some(ttft), Some(latency)) = (measured.ttft(), measured.latency()) else { continue };
        let question = starts[*talk] + 2 * turn;
        let sum = |range: std::ops::Range<usize>| -> u64 {
            counts[range].iter().copied().map(u64::from).sum()
        };
        let (history, input) = (sum(starts[*talk]..question), sum(starts[*talk]..question + 1));
        let output = u64::from(counts[question + 1]);
        let reply = Reply {
            ttft_ms: ttft * 1e3,
            latency_ms: latency * 1e3,
            tokens: output,
            first_chunk_tokens: tokenizer.count(first_piece(record), false)?.into(),
        };
        let (ttft_ms, tpot_ms) = reply.by_tokens();
        stats.push(RequestStats {
            ttft_ms,
            tpot_ms,
            latency_ms: reply.latency_ms,
            start_time_ms: record.dispatched.as_secs_f64() * 1e3,
            input_num_turns: 2 * turn + 1,
            input_num_tokens: input,
            output_num_tokens: output,
            output_num_chunks: record.reply.chunks.len(),
            output_num_first_chunk_tokens: reply.first_chunk_tokens,
            approx_cached_percent: if input > 0 {
                history as f64 / input as f64 * 100.0
            } else {
                0.0
            },
            conversation_id: talks[*talk].id.clone(),
            client_id: clients.get(talk).copied().unwrap_or(0),
            server_input_num_tokens: record.reply.prompt_tokens,
            server_cached_num_tokens: record.reply.cached_tokens,
        });
    }
    stats.sort_by(|a, b| a.start_time_ms.total_cmp(&b.start_time_ms));
    Ok(stats)
}

/// The text that came first.
fn first_piece(record: &Record) -> &str {
    let text = &record.reply.text;
    // A chunk that has none is none.
    let end = record.reply.pieces.iter().find(|end| **end > 0);
    end.and_then(|end| text.get(..*end as usize)).unwrap_or(text)
}

/// What the tables say besides the figures.
pub(super) struct Shown<'a> {
    /// Name and value of what was asked for.
    pub(super) parameters: &'a [(&'static str, String)],
    /// The same of how conversations were made.
    pub(super) generator: &'a [(&'static str, String)],
    /// Parts of the requests that do not count.
    pub(super) warmups: &'a [f64],
    pub(super) warmup_seconds: Option<f64>,
    pub(super) verbose: bool,
}

impl Shown<'_> {
    /// The tables of the Python script.
    pub(super) fn tables(&self, stats: &[RequestStats]) -> String {
        let rule = "-".repeat(WIDTH);
        let mut text = format!("{rule}\nParameters:\n");
        let lines = |text: &mut String, pairs: &[(&str, String)]| {
            for (name, value) in pairs {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{name}={value}");
            }
        };
        lines(&mut text, self.parameters);
        if !self.generator.is_empty() {
            text.push_str("Conversations Generation Parameters:\n");
            lines(&mut text, self.generator);
        }
        text.push_str(&rule);
        // By all of them, as the percentiles of all tables are the same.
        let percentiles = worthwhile_percentiles(stats.len());
        for part in self.warmups {
            let counted = &stats[(part * stats.len() as f64) as usize..];
            if counted.is_empty() {
                break;
            }
            let title = if *part > 0.0 || self.warmups.len() > 1 {
                format!("Statistics summary (assuming {:.0}% warmup samples):", part * 100.0)
            } else {
                "Statistics summary:".to_owned()
            };
            let runtime = runtime(counted);
            let rate = counted.len() as f64 / runtime;
            let _ = write!(
                text,
                "\n{title}\nruntime_sec = {runtime:.3}\nrequests_per_sec = {rate:.3}\n"
            );
            if let Some(warmup) = self.warmup_seconds {
                let all = runtime + warmup;
                let _ = writeln!(
                    text,
                    "warmup_runtime_sec = {warmup:.3}\ntotal_runtime_incl_warmup_sec = {all:.3}"
                );
            }
            let table = describe(&self.series(counted), &percentiles, 2);
            let _ = write!(text, "{rule}\n{table}\n{rule}");
        }
        text
    }

    fn series(&self, stats: &[RequestStats]) -> Vec<Series> {
        type Value = fn(&RequestStats) -> f64;
        let columns: [(&str, Value); 7] = [
            ("ttft_ms", |it| it.ttft_ms),
            ("tpot_ms", |it| it.tpot_ms),
            ("latency_ms", |it| it.latency_ms),
            ("input_num_turns", |it| it.input_num_turns as f64),
            ("input_num_tokens", |it| it.input_num_tokens as f64),
            ("output_num_tokens", |it| it.output_num_tokens as f64),
            ("output_num_chunks", |it| it.output_num_chunks as f64),
        ];
        let series = |(name, value): (&str, Value)| Series {
            name: name.to_owned(),
            samples: stats.iter().map(value).collect(),
        };
        let mut all: Vec<Series> = columns.into_iter().map(series).collect();
        if self.verbose {
            all.push(Series {
                name: "time_between_user_turns_sec".to_owned(),
                samples: between_turns(stats),
            });
        }
        all
    }
}

/// Seconds from the first start to the last end; `stats` are in the order of their starts.
pub(super) fn runtime(stats: &[RequestStats]) -> f64 {
    let start = stats.first().map_or(0.0, |first| first.start_time_ms);
    let ends = stats.iter().map(|it| it.start_time_ms + it.latency_ms);
    (ends.fold(start, f64::max) - start) / 1e3
}

/// Seconds from the start of a turn to that of the next one of the same conversation.
fn between_turns(stats: &[RequestStats]) -> Vec<f64> {
    let mut last: HashMap<&str, f64> = HashMap::new();
    let mut gaps = Vec::new();
    for it in stats {
        let before = last.insert(&it.conversation_id, it.start_time_ms);
        gaps.extend(before.map(|before| (it.start_time_ms - before) / 1e3));
    }
    gaps
}

/// What there is to say of conversations in a file; with a tokenizer, in tokens too.
pub(super) fn of_conversations(
    conversations: &[MultiTurnConversation],
    tokenizer: Option<&Tokenizer>,
) -> Result<Vec<Series>, TokensError> {
    type Value = fn(&[String]) -> usize;
    fn side(said: &[String], first: usize, of: fn(&str) -> usize) -> usize {
        said.iter().skip(first).step_by(2).map(|text| of(text)).sum()
    }
    fn words(text: &str) -> usize {
        text.matches(' ').count() + 1
    }
    let columns: [(&str, Value); 7] = [
        ("user_turns", |said| side(said, 0, |_| 1)),
        ("assistant_turns", |said| side(said, 1, |_| 1)),
        ("user_words", |said| side(said, 0, words)),
        ("assistant_words", |said| side(said, 1, words)),
        ("conv_turns", <[String]>::len),
        ("conv_words", |said| said.iter().map(|text| words(text)).sum()),
        ("conv_characters", |said| said.iter().map(|text| text.chars().count()).sum()),
    ];
    let series = |(name, value): (&str, Value)| Series {
        name: name.to_owned(),
        samples: conversations.iter().map(|it| value(&it.messages) as f64).collect(),
    };
    let mut all: Vec<Series> = columns.into_iter().map(series).collect();
    let Some(tokenizer) = tokenizer else { return Ok(all) };
    let (mut user, mut assistant) = (Vec::new(), Vec::new());
    for conversation in conversations {
        let counts = tokenizer.count_batch(&conversation.messages, true)?;
        for (first, means) in [(0, &mut user), (1, &mut assistant)] {
            let side: Vec<u32> = counts.iter().skip(first).step_by(2).copied().collect();
            let sum: u64 = side.iter().copied().map(u64::from).sum();
            // Whole numbers, as the script shows them.
            means.extend((!side.is_empty()).then(|| (sum / side.len() as u64) as f64));
        }
    }
    all.push(Series { name: "user_tokens".to_owned(), samples: user });
    all.push(Series { name: "assistant_tokens".to_owned(), samples: assistant });
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(start: f64, latency: f64, conversation: &str) -> RequestStats {
        RequestStats {
            ttft_ms: 1.0,
            tpot_ms: 1.0,
            latency_ms: latency,
            start_time_ms: start,
            input_num_turns: 1,
            input_num_tokens: 10,
            output_num_tokens: 5,
            output_num_chunks: 5,
            output_num_first_chunk_tokens: 1,
            approx_cached_percent: 0.0,
            conversation_id: conversation.to_owned(),
            client_id: 0,
            server_input_num_tokens: None,
            server_cached_num_tokens: None,
        }
    }

    #[test]
    fn times_are_those_of_tokens() {
        let reply = |tokens, first_chunk_tokens| Reply {
            ttft_ms: 100.0,
            latency_ms: 200.0,
            tokens,
            first_chunk_tokens,
        };
        assert_eq!(reply(11, 1).by_tokens(), (100.0, 10.0));
        // The first chunk has five tokens, of which four took 10 ms each.
        assert_eq!(reply(15, 5).by_tokens(), (60.0, 10.0));
        assert_eq!(reply(20, 15).by_tokens(), (LEAST_TTFT, 20.0));
        // All in one chunk.
        assert_eq!(reply(5, 5).by_tokens(), (100.0, 0.0));
        assert_eq!(reply(1, 0).by_tokens(), (100.0, 0.0));
    }

    #[test]
    fn a_run_lasts_to_its_last_end_and_turns_are_apart_by_their_starts() {
        let all = [stats(100.0, 900.0, "a"), stats(200.0, 100.0, "b"), stats(600.0, 50.0, "a")];
        assert!((runtime(&all) - 0.9).abs() < 1e-12);
        assert_eq!(between_turns(&all), [0.5]);
    }
}
