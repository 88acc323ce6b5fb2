//! What servers tell that a batch needs to know.

use super::plan::{Case, OneBatchPlan};
use serde_json::Value;

/// Token capacity of a scheduler that tells none.
const UNTOLD_CAPACITY: u64 = 1_000_000_000;

/// How much a server runs at once; `None`: as much as it likes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Guards {
    /// Prompts.
    pub(super) running: Option<u64>,
    /// Tokens of prompts and outputs.
    pub(super) tokens: Option<u64>,
}

/// What SGLang's `/server_info` tells about its limits, and what the user should know of it.
pub(super) fn guards(info: &Value) -> (Guards, Vec<String>) {
    let states = states(info);
    let Some(first) = states.first() else {
        let what = if truthy(info.get("router_manager")) { "a router" } else { "a server" };
        let warning = format!(
            "{what} that does not tell its limits: batch sizes and lengths are not checked against them"
        );
        return (Guards::default(), vec![warning]);
    };
    let number = |key: &str| first.get(key).or_else(|| info.get(key)).and_then(Value::as_u64);
    let size = |key: &str| number(key).filter(|size| *size > 0).unwrap_or(1);
    let ranks = size("dp_size").saturating_mul(size("attn_dp_size"));
    let per_rank = first.get("effective_max_running_requests_per_dp").and_then(Value::as_u64);
    let per_rank = per_rank.filter(|running| *running > 0);
    let capacity = |state: &Value| {
        let told = state.get("memory_usage").and_then(|usage| usage.get("token_capacity"));
        told.and_then(Value::as_u64).unwrap_or(UNTOLD_CAPACITY)
    };
    let tokens = states.iter().map(capacity).fold(0, u64::saturating_add);
    let running = per_rank.map(|running| running.saturating_mul(ranks));
    let show = |limit: Option<u64>| limit.map_or_else(|| "inf".into(), |limit| limit.to_string());
    let said = vec![
        format!("max_running_requests_per_dp={}", show(per_rank)),
        format!("num_dp_ranks={ranks}"),
        format!("skip_max_running_requests_threshold={}", show(running)),
        format!("skip_token_capacity_threshold={tokens}"),
    ];
    (Guards { running, tokens: Some(tokens) }, said)
}

fn truthy(value: Option<&Value>) -> bool {
    !matches!(value, None | Some(Value::Null | Value::Bool(false)))
}

/// The schedulers' reports.
fn states(info: &Value) -> &[Value] {
    info.get("internal_states").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The last report of a number by any scheduler.
fn last(info: &Value, key: &str) -> Option<f64> {
    let decode = info.get("decode").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let all = std::iter::once(info).chain(decode);
    all.flat_map(states).filter_map(|state| state.get(key)?.as_f64()).next_back()
}

/// Tokens per verification step of speculative decoding.
pub(super) fn accept_length(info: &Value) -> Option<f64> {
    last(info, "avg_spec_accept_length")
}

/// Output tokens per second, as the server last reckoned them.
pub(super) fn last_gen_throughput(info: &Value) -> Option<f64> {
    last(info, "last_gen_throughput")
}

/// The tokenizer that a server, or the first prefill server behind a router, says it uses.
pub(super) fn tokenizer_path(info: &Value) -> Option<String> {
    let of = |info: &Value| info.get("tokenizer_path")?.as_str().map(str::to_owned);
    of(info).or_else(|| of(info.get("prefill")?.get(0)?)).filter(|path| !path.is_empty())
}

impl Guards {
    /// The guards as the plan wants them.
    pub(super) fn of_plan(mut self, plan: &OneBatchPlan) -> Self {
        if !plan.check_capacity {
            self.tokens = None;
        }
        self
    }

    /// Why a case is not run, if it is not.
    pub(super) fn refuse(&self, case: Case, plan: &OneBatchPlan) -> Option<String> {
        let Case { batch_size, input_len, output_len } = case;
        let rows = u64::from(batch_size);
        if let Some(running) = self.running.filter(|running| rows > *running && !plan.multi_batch) {
            return Some(format!(
                "========Skip benchmark batch_size={batch_size}: the server runs {running} requests \
                 at once (--enable-multi-batch sends more)========"
            ));
        }
        // What waits takes no room.
        let held = match self.running {
            Some(running) if plan.multi_batch => rows.min(running),
            _ => rows,
        };
        let input: u64 = if plan.input_len_list.is_empty() {
            held * u64::from(input_len)
        } else {
            let list = plan.input_len_list.iter().cycle();
            list.take(held as usize).map(|&length| u64::from(length)).sum()
        };
        let needed = input + held * u64::from(output_len);
        let capacity = self.tokens.filter(|capacity| needed > *capacity)?;
        Some(format!(
            "========Skip benchmark batch_size={batch_size} input_len={input_len} \
             output_len={output_len}: {needed} tokens are more than the server's cache holds, which is \
             {capacity} (--skip-token-capacity-check runs it)========"
        ))
    }

    /// Batch sizes that `--enable-multi-batch` does nothing for.
    pub(super) fn fits_anyway(&self, plan: &OneBatchPlan) -> Vec<u32> {
        let Some(running) = self.running.filter(|_| plan.multi_batch) else { return Vec::new() };
        let mut sizes = plan.batch_size.clone();
        sizes.retain(|size| u64::from(*size) <= running);
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }
}

/// Counters of the server's prefix cache.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CacheCounters {
    cached: f64,
    prompt: f64,
}

impl CacheCounters {
    /// Reads the counters of a page in Prometheus's text format, summed over their labels.
    pub(super) fn of(page: &[u8]) -> Self {
        let text = String::from_utf8_lossy(page);
        let sum = |name: &str| {
            let value = |line: &str| {
                let labelled = line.strip_prefix(name)?.strip_prefix('{')?;
                let (_, values) = labelled.rsplit_once('}')?;
                let value: f64 = values.split_ascii_whitespace().next()?.parse().ok()?;
                value.is_finite().then_some(value)
            };
            text.lines().filter_map(value).sum()
        };
        Self {
            cached: sum("sglang:cached_tokens_total"),
            prompt: sum("sglang:prompt_tokens_total"),
        }
    }

    /// The share of prompt tokens since `before` that the cache held.
    pub(super) fn hit_rate_since(&self, before: &Self) -> Option<f64> {
        let prompt = self.prompt - before.prompt;
        (prompt > 0.0).then(|| (self.cached - before.cached) / prompt)
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::OneBatchArgs;
    use super::*;
    use clap::Parser;
    use proptest::prelude::*;
    use serde_json::json;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        all: OneBatchArgs,
    }

    fn plan(words: &str) -> OneBatchPlan {
        let line = Line::try_parse_from(["x"].into_iter().chain(words.split_whitespace()));
        let args = line.unwrap_or_else(|error| panic!("{error}")).all;
        OneBatchPlan::new(args).unwrap_or_else(|failure| panic!("{failure}"))
    }

    fn info() -> Value {
        json!({"tokenizer_path": "t", "internal_states": [
            {"effective_max_running_requests_per_dp": 4, "dp_size": 2, "attn_dp_size": 3,
                "memory_usage": {"token_capacity": 1000}, "last_gen_throughput": 7.5},
            {"memory_usage": {"token_capacity": 500}, "avg_spec_accept_length": 2.5}]})
    }

    #[test]
    fn limits_are_of_all_ranks() {
        let (guards, said) = guards(&info());
        assert_eq!(guards, Guards { running: Some(24), tokens: Some(1500) });
        assert_eq!(
            said,
            [
                "max_running_requests_per_dp=4",
                "num_dp_ranks=6",
                "skip_max_running_requests_threshold=24",
                "skip_token_capacity_threshold=1500"
            ]
        );
        assert_eq!((accept_length(&info()), last_gen_throughput(&info())), (Some(2.5), Some(7.5)));
        let untold = json!({"internal_states": [{}]});
        assert_eq!(
            super::guards(&untold).0,
            Guards { running: None, tokens: Some(UNTOLD_CAPACITY) }
        );
        let router = json!({"router_manager": true, "prefill": [{"tokenizer_path": "p"}]});
        assert_eq!(super::guards(&router).0, Guards::default());
        assert_eq!(tokenizer_path(&router).as_deref(), Some("p"));
    }

    #[test]
    fn what_does_not_fit_is_not_run() {
        let guards = Guards { running: Some(8), tokens: Some(1000) };
        let case = |batch_size, input_len, output_len| Case { batch_size, input_len, output_len };
        let refused = |words: &str, case| guards.refuse(case, &plan(words));
        assert_eq!(refused("", case(8, 100, 25)), None);
        let said = refused("", case(9, 1, 1)).expect("too many");
        assert!(said.starts_with("========Skip benchmark batch_size=9"), "{said}");
        let said = refused("", case(8, 100, 26)).expect("too long");
        assert!(said.contains("1008 tokens"), "{said}");
        // What waits holds no tokens.
        assert_eq!(refused("--enable-multi-batch", case(80, 100, 25)), None);
        assert!(refused("--enable-multi-batch", case(80, 100, 26)).is_some());
        // 100 + 300 + 100 tokens in, 600 out.
        let list = "--dataset-name random-ids --input-len-list 100,300";
        assert_eq!(refused(list, case(3, 9, 166)), None);
        assert!(refused(list, case(3, 9, 167)).is_some());
        let multi = plan("--enable-multi-batch --batch-size 9 8 2 2");
        assert_eq!(guards.fits_anyway(&multi), [2, 8]);
        let unchecked = plan("--skip-token-capacity-check");
        assert_eq!(guards.of_plan(&unchecked).refuse(case(8, 9999, 1), &unchecked), None);
    }

    #[test]
    fn counters_are_summed_over_their_labels() {
        let page = "# HELP sglang:cached_tokens_total x\nsglang:cached_tokens_total{a=\"}1\"} 10.0\n\
            sglang:cached_tokens_total{a=\"2\"} 5\nsglang:prompt_tokens_total{} 2e1\n\
            sglang:prompt_tokens_total_created{} 99\nsglang:prompt_tokens_total{x=\"\"} NaN\n";
        let first = CacheCounters::of(page.as_bytes());
        assert_eq!(first, CacheCounters { cached: 15.0, prompt: 20.0 });
        let later = CacheCounters { cached: 25.0, prompt: 60.0 };
        assert_eq!(later.hit_rate_since(&first), Some(0.25));
        assert_eq!(first.hit_rate_since(&first), None);
    }

    proptest! {
        #[test]
        fn any_page_is_read(page: Vec<u8>, tail in "(sglang:cached_tokens_total|\\{|\\}|[0-9e.]|\n| ){0,30}") {
            let counters = CacheCounters::of(&[page, tail.into_bytes()].concat());
            prop_assert!(!counters.cached.is_nan() && !counters.prompt.is_nan());
        }

        #[test]
        fn any_report_gives_limits(text in "[\\[\\]{}:,\"a-z_0-9.-]{0,60}") {
            if let Ok(info) = serde_json::from_str::<Value>(&text) {
                let (guards, _) = guards(&info);
                prop_assert!(guards.running != Some(0));
                drop((accept_length(&info), last_gen_throughput(&info), tokenizer_path(&info)));
            }
        }
    }
}
