//! The result in the format of PyTorch's benchmark database.

use serde_json::{Map, Value, json};

/// The keys that become records of their own.
const METRICS: [&str; 12] = [
    "mean_ttft_ms",
    "median_ttft_ms",
    "std_ttft_ms",
    "p99_ttft_ms",
    "mean_tpot_ms",
    "median_tpot_ms",
    "std_tpot_ms",
    "p99_tpot_ms",
    "mean_itl_ms",
    "median_itl_ms",
    "std_itl_ms",
    "p99_itl_ms",
];

/// Keys that are no further information on a metric.
const LEFT_OUT: [&str; 5] = ["ttfts", "itls", "generated_texts", "errors", "servebench"];

/// One record for each metric that `result` has, with the command line as `arguments`.
pub fn pytorch(result: &Map<String, Value>, arguments: &Map<String, Value>) -> Value {
    let mut arguments = arguments.clone();
    if let Some(size) = result.get("tensor_parallel_size") {
        arguments.insert("tensor_parallel_size".to_owned(), size.clone());
    }
    let model = result.get("model_id").cloned().unwrap_or_default();
    let is_metric = |key: &str| METRICS.contains(&key);
    let further: Map<String, Value> = result
        .iter()
        .filter(|(key, _)| !is_metric(key) && !LEFT_OUT.contains(&key.as_str()))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let present = METRICS.iter().filter_map(|name| Some((name, result.get(*name)?)));
    present.map(|(name, value)| pytorch_record(&model, &arguments, name, value, &further)).collect()
}

/// One record: a metric and its value, or all values where it is a list, with `further` information on it.
pub fn pytorch_record(
    model: &Value,
    arguments: &Map<String, Value>,
    name: &str,
    value: &Value,
    further: &Map<String, Value>,
) -> Value {
    let values = match value {
        Value::Array(values) => values.clone(),
        value => vec![value.clone()],
    };
    json!({
        "benchmark": {"name": "vLLM benchmark", "extra_info": {
            "args": arguments, "compilation_config.mode": null,
            "optimization_level": null, "use_compile": null,
        }},
        "model": {"name": model},
        "metric": {"name": name, "benchmark_values": values, "extra_info": further},
    })
}
