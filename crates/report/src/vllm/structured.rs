//! The table, the result and the file name of `benchmark_serving_structured_output.py`.

use super::json::{OWN, error, itls, number, output_len, statistics};
use super::table::Table;
use super::{Metric, VllmReport};
use crate::json::own_keys;
use crate::python_float;
use serde_json::{Map, Value, json};
use servebench_metrics::{Distribution, Measured, percentile};

/// What is known of each reply beside what was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replies {
    /// For each request, in plan order: the reply that its dataset has.
    pub expected: Vec<Option<String>>,
    /// For each request, whether the reply is right by the script's rule; `None` where it has no rule.
    pub correct: Vec<Option<bool>>,
}

impl Replies {
    /// The right ones, in percent of those for which there is a rule; `None` without such.
    pub fn correct_rate(&self) -> Option<f64> {
        let ruled = self.correct.iter().flatten().count();
        let right = self.correct.iter().flatten().filter(|right| **right).count();
        (ruled > 0).then(|| right as f64 / ruled as f64 * 100.0)
    }
}

/// The default name of a result file:
/// `{ratio}so_{backend}_{rate}qps_{model}_{dataset}_{requests}_out{output length}.txt`.
///
/// `ratio` is the share of requests with a constraint; `None` where constraints were turned off. Characters that would
/// change the folder become `-`.
pub fn structured_file_name(
    report: &super::VllmInfo,
    ratio: Option<f64>,
    dataset: &str,
    output_len: u32,
) -> String {
    let ratio = ratio.map_or_else(|| "0".to_owned(), python_float);
    let rate = python_float(report.request_rate);
    let model = report.model_id.rsplit('/').find(|part| !part.is_empty()).unwrap_or("model");
    let (backend, count) = (&report.backend, report.num_prompts);
    let name =
        format!("{ratio}so_{backend}_{rate}qps_{model}_{dataset}_{count}_out{output_len}.txt");
    name.replace(['/', '\\'], "-")
}

/// The table of the script to the character, with a section of our own before its end, and the line with the share
/// of right replies.
pub fn structured_table(report: &VllmReport<'_>, replies: &Replies) -> String {
    let (info, run) = (&report.info, &report.base.aggregates);
    let mut table = Table(String::new());
    table.line(&format!("{:=^50}", " Serving Benchmark Result "));
    table.row("Successful requests:", run.completed);
    if let Some(cap) = info.max_concurrency {
        table.row("Maximum request concurrency:", cap);
    }
    if info.request_rate.is_finite() {
        table.number("Request rate configured (RPS):", Some(info.request_rate));
    }
    table.number("Benchmark duration (s):", run.own.duration);
    table.row("Total input tokens:", run.total_input_tokens_server);
    table.row("Total generated tokens:", run.own.total_output_tokens);
    table.number("Request throughput (req/s):", run.own.request_throughput);
    if let Some(goodput) = &run.own.goodput {
        table.number("Request goodput (req/s):", goodput.request_goodput);
    }
    table.number("Output token throughput (tok/s):", run.own.output_throughput);
    table.number("Total token throughput (tok/s):", report.total_token_throughput());
    for metric in metrics(report) {
        table.metric(report, metric);
    }
    table.end(report);
    let rate = replies.correct_rate().map_or_else(|| "None".to_owned(), python_float);
    table.line(&format!("correct_rate(%) {rate}"));
    table.0
}

/// The result of the script: its keys in its order, then `servebench`, an object with our own.
///
/// The JSON is strict: what was not measured is `null`, and an infinite rate is the text `inf`.
pub fn structured_result(report: &VllmReport<'_>, replies: &Replies) -> Map<String, Value> {
    let (info, run) = (&report.info, &report.base.aggregates);
    let mut keys = Map::new();
    let mut put = |key: &str, value: Value| keys.insert(key.to_owned(), value);
    let beside = replies.expected.iter().zip(&replies.correct);
    let outputs = report.requests.iter().zip(beside).map(|(request, (expected, correct))| {
        json!({"generated": request.record.reply.text, "expected": expected, "correctness": correct})
    });
    put("outputs", outputs.collect());
    put("backend", json!(info.backend));
    put("model_id", json!(info.model_id));
    put("tokenizer_id", json!(info.tokenizer_id));
    put("num_prompts", json!(info.num_prompts));
    put("request_rate", number(info.request_rate));
    put("burstiness", number(info.burstiness));
    put("max_concurrency", json!(info.max_concurrency));
    put("correct_rate(%)", json!(replies.correct_rate()));
    put("duration", json!(run.own.duration));
    put("completed", json!(run.completed));
    put("total_input_tokens", json!(run.total_input_tokens_server));
    put("total_output_tokens", json!(run.own.total_output_tokens));
    put("request_throughput", json!(run.own.request_throughput));
    put("output_throughput", json!(run.own.output_throughput));
    put("total_token_throughput", json!(report.total_token_throughput()));
    let successes = || report.requests.iter().filter(|request| request.record.is_success());
    put("ttft_description", description(successes().filter_map(Measured::ttft).collect()));
    // As in the script, one token, or a reply in one piece, counts as no time.
    let each = successes().map(|request| request.tpot().unwrap_or(0.0));
    put("tpot_description", description(each.collect()));
    put("input_lens", report.each(|request| json!(request.prompt_tokens())));
    put("output_lens", report.each(|request| json!(output_len(request))));
    put("ttfts", report.each(|request| json!(request.ttft())));
    put("itls", report.each(|request| itls(report, request)));
    put("errors", report.each(error));
    for metric in metrics(report) {
        statistics(report, metric, &mut keys);
    }
    let mut own = own_keys(&report.base);
    own.extend(info.own.clone());
    keys.insert(OWN.to_owned(), Value::Object(own));
    keys
}

fn metrics(report: &VllmReport<'_>) -> impl Iterator<Item = Metric> {
    Metric::ALL.into_iter().filter(|metric| report.has(*metric))
}

/// Samples as pandas' `describe` has them: the deviation is that of a sample, which one value has not.
fn description(mut samples: Vec<f64>) -> Value {
    let found = Distribution::of(&mut samples);
    let count = samples.len() as f64;
    let of = |of: fn(&Distribution) -> f64| found.as_ref().map(of);
    let deviation = of(|d| d.std).map(|std| std * (count / (count - 1.0)).sqrt());
    let quartile = |q| percentile(&samples, q);
    json!({
        "count": count,
        "mean": of(|d| d.mean),
        "std": deviation.filter(|deviation| deviation.is_finite()),
        "min": of(|d| d.min),
        "25%": quartile(25.0),
        "50%": quartile(50.0),
        "75%": quartile(75.0),
        "max": of(|d| d.max),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::VllmInfo;

    #[test]
    fn names_are_those_of_the_script() {
        let info = VllmInfo {
            backend: "vllm".into(),
            model_id: "NousResearch/Hermes-3".into(),
            num_prompts: 1000,
            request_rate: 10.0,
            ..VllmInfo::default()
        };
        let name = |info: &VllmInfo, ratio| structured_file_name(info, ratio, "json-unique", 128);
        let want = "1.0so_vllm_10.0qps_Hermes-3_json-unique_1000_out128.txt";
        assert_eq!(name(&info, Some(1.0)), want);
        let info = VllmInfo { request_rate: f64::INFINITY, model_id: "/m/".into(), ..info };
        assert_eq!(name(&info, None), "0so_vllm_infqps_m_json-unique_1000_out128.txt");
        assert_eq!(name(&info, Some(0.25)), "0.25so_vllm_infqps_m_json-unique_1000_out128.txt");
    }

    #[test]
    fn descriptions_are_those_of_pandas() {
        // pandas.Series([3.0, 1.0, 4.0, 2.5]).describe()
        let want = json!({"count": 4.0, "mean": 2.625, "std": 1.25, "min": 1.0, "25%": 2.125,
            "50%": 2.75, "75%": 3.25, "max": 4.0});
        assert_eq!(description(vec![3.0, 1.0, 4.0, 2.5]), want);
        let one = description(vec![2.0]);
        assert_eq!(
            (&one["count"], &one["std"], &one["75%"]),
            (&json!(1.0), &Value::Null, &json!(2.0))
        );
        let none = description(Vec::new());
        assert_eq!(
            (&none["count"], &none["std"], &none["max"]),
            (&json!(0.0), &Value::Null, &Value::Null)
        );
    }

    #[test]
    fn the_rate_is_of_those_with_a_rule() {
        let rate = |correct: &[Option<bool>]| {
            Replies { correct: correct.to_vec(), ..Replies::default() }.correct_rate()
        };
        assert_eq!(rate(&[Some(true), None, Some(false), Some(true), Some(false)]), Some(50.0));
        assert_eq!(rate(&[None, None]), None);
    }
}
