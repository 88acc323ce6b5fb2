//! The bodies of a case's requests.

use super::args::BatchBackend;
use super::plan::OneBatchPlan;
use super::prompts::Prompts;
use crate::args::LoraDistribution;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use servebench_core::Picture;
use servebench_core::random::Draws;

/// The address that tells a decode server to make the KV cache up.
const FAKE_BOOTSTRAP: &str = "2.2.2.2";

#[derive(Serialize)]
struct Sampling {
    temperature: f64,
    max_new_tokens: u32,
    ignore_eos: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    json_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_interval: Option<u32>,
}

#[derive(Serialize)]
struct Native<'a> {
    input_ids: Vec<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_data: Option<Vec<Vec<&'a str>>>,
    sampling_params: Sampling,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_logprob: Option<bool>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_batch: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap_host: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bootstrap_room: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lora_path: Option<Adapters<'a>>,
}

#[derive(Serialize)]
struct Completions<'a> {
    model: &'a str,
    prompt: Vec<&'a [u32]>,
    max_tokens: u32,
    temperature: f64,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

/// Asks for each prompt's count of tokens in every frame, which upstream does without.
#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
    continuous_usage_stats: bool,
}

/// One adapter for the batch, or one for each prompt.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Adapters<'a> {
    One(&'a str),
    Each(Vec<&'a str>),
}

/// The adapters of a batch of `rows` prompts.
pub(super) fn adapters<'a>(
    plan: &'a OneBatchPlan,
    rows: usize,
    draws: &mut Draws,
) -> Option<Adapters<'a>> {
    let names = plan.lora_name.as_slice();
    let count = u32::try_from(names.len()).unwrap_or(u32::MAX);
    let pick = |index: usize| names.get(index).map_or("", String::as_str);
    match names {
        [] => None,
        [only] => Some(Adapters::One(only)),
        _ => Some(Adapters::Each(match plan.lora_request_distribution {
            LoraDistribution::Uniform => {
                (0..rows).map(|_| pick(draws.python.choice_index(count) as usize)).collect()
            }
            LoraDistribution::Distinct => (0..rows).map(|row| pick(row % names.len())).collect(),
            LoraDistribution::Skewed => {
                let weight = |i: usize| plan.lora_zipf_alpha.powf(-(i as f64));
                let raw: Vec<f64> = (0..names.len()).map(weight).collect();
                let sum: f64 = raw.iter().sum();
                let weights: Vec<f64> = raw.into_iter().map(|weight| weight / sum).collect();
                (0..rows).map(|_| pick(draws.numpy.choice_weighted(&weights))).collect()
            }
        })),
    }
}

/// The pictures of each prompt, if there are any.
fn images(prompts: &Prompts) -> Option<Vec<Vec<&str>>> {
    fn uris(row: &[Picture]) -> Vec<&str> {
        row.iter().map(|picture| &*picture.uri).collect()
    }
    let rows = prompts.pictures.iter().map(|row| uris(row));
    (!prompts.pictures.is_empty()).then(|| rows.collect())
}

fn to_bytes(body: &impl Serialize) -> Bytes {
    // Numbers, strings and lists always have a JSON form.
    serde_json::to_vec(body).unwrap_or_default().into()
}

/// The measured request.
pub(super) fn measured(
    plan: &OneBatchPlan,
    prompts: &Prompts,
    model: &str,
    ignore_eos: bool,
    adapters: Option<Adapters<'_>>,
) -> Bytes {
    let rows = prompts.ids.iter().map(Vec::as_slice).collect();
    match plan.backend {
        BatchBackend::Sglang => {
            let sampling_params = Sampling {
                temperature: plan.temperature,
                max_new_tokens: prompts.output_len,
                ignore_eos,
                json_schema: Some(Value::Null),
                stream_interval: Some(plan.stream_interval),
            };
            to_bytes(&Native {
                input_ids: rows,
                image_data: images(prompts),
                sampling_params,
                return_logprob: Some(plan.return_logprob),
                stream: true,
                parallel_batch: plan.parallel_batch.then_some(true),
                bootstrap_host: plan.fake_prefill.then_some(FAKE_BOOTSTRAP),
                bootstrap_room: plan.fake_prefill.then_some(0),
                lora_path: adapters,
            })
        }
        BatchBackend::Vllm => to_bytes(&Completions {
            model,
            prompt: rows,
            max_tokens: prompts.output_len,
            temperature: plan.temperature,
            stream: true,
            ignore_eos: Some(ignore_eos),
            logprobs: plan.return_logprob.then_some(1),
            stream_options: Some(StreamOptions {
                include_usage: true,
                continuous_usage_stats: true,
            }),
        }),
    }
}

/// The request that fills the server's cache with the first `length` tokens of every prompt.
pub(super) fn filling(plan: &OneBatchPlan, prompts: &Prompts, model: &str, length: usize) -> Bytes {
    let rows = prompts.ids.iter().map(|row| &row[..length.min(row.len())]).collect();
    match plan.backend {
        BatchBackend::Sglang => to_bytes(&Native {
            input_ids: rows,
            image_data: images(prompts),
            sampling_params: Sampling {
                temperature: 0.0,
                max_new_tokens: 1,
                ignore_eos: true,
                json_schema: None,
                stream_interval: None,
            },
            return_logprob: None,
            stream: false,
            parallel_batch: None,
            bootstrap_host: None,
            bootstrap_room: None,
            lora_path: None,
        }),
        BatchBackend::Vllm => to_bytes(&Completions {
            model,
            prompt: rows,
            max_tokens: 1,
            temperature: 0.0,
            stream: false,
            ignore_eos: None,
            logprobs: None,
            stream_options: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::args::OneBatchArgs;
    use super::*;
    use clap::Parser;
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

    fn prompts() -> Prompts {
        Prompts {
            ids: vec![vec![1, 2, 3, 4], vec![5, 6]],
            pictures: Vec::new(),
            input_len: 3,
            output_len: 8,
            input_tokens: 6,
            upstream_input_tokens: 6,
        }
    }

    fn value(bytes: &Bytes) -> Value {
        serde_json::from_slice(bytes).expect("JSON")
    }

    #[test]
    fn the_native_body_is_upstreams() {
        let plain = measured(&plan("--temperature 0.5"), &prompts(), "", true, None);
        let want = json!({"input_ids": [[1, 2, 3, 4], [5, 6]],
            "sampling_params": {"temperature": 0.5, "max_new_tokens": 8, "ignore_eos": true,
                "json_schema": null, "stream_interval": 1},
            "return_logprob": false, "stream": true});
        assert_eq!(value(&plain), want);
        let plan = plan(
            "--fake-prefill --parallel-batch --return-logprob --client-stream-interval 4 --lora-name a",
        );
        let adapters = adapters(&plan, 2, &mut Draws::new(1));
        let body = value(&measured(&plan, &prompts(), "", true, adapters));
        assert_eq!(body["bootstrap_host"], "2.2.2.2");
        assert_eq!((&body["bootstrap_room"], &body["parallel_batch"]), (&json!(0), &json!(true)));
        assert_eq!((&body["return_logprob"], &body["lora_path"]), (&json!(true), &json!("a")));
        assert_eq!(body["sampling_params"]["stream_interval"], 4);
    }

    #[test]
    fn pictures_stand_beside_the_ids_of_their_prompts() {
        let picture = |uri: &str| Picture { uri: uri.into(), width: 1, height: 1 };
        let pictures = vec![vec![picture("a"), picture("b")], vec![picture("c")]];
        let prompts = Prompts { pictures, ..prompts() };
        let want = json!([["a", "b"], ["c"]]);
        let plan = plan("");
        assert_eq!(value(&measured(&plan, &prompts, "", true, None))["image_data"], want);
        assert_eq!(value(&filling(&plan, &prompts, "", 2))["image_data"], want);
    }

    #[test]
    fn the_completions_body_asks_for_counts_too() {
        let plan = plan("--backend vllm --return-logprob");
        let want = json!({"model": "m", "prompt": [[1, 2, 3, 4], [5, 6]], "max_tokens": 8,
            "temperature": 0.0, "stream": true, "ignore_eos": true, "logprobs": 1,
            "stream_options": {"include_usage": true, "continuous_usage_stats": true}});
        assert_eq!(value(&measured(&plan, &prompts(), "m", true, None)), want);
        let want = json!({"model": "m", "prompt": [[1, 2, 3], [5, 6]], "max_tokens": 1,
            "temperature": 0.0, "stream": false});
        assert_eq!(value(&filling(&plan, &prompts(), "m", 3)), want);
    }

    #[test]
    fn the_cache_is_filled_with_the_beginning_of_each_prompt() {
        let want = json!({"input_ids": [[1, 2], [5, 6]], "sampling_params": {"temperature": 0.0,
            "max_new_tokens": 1, "ignore_eos": true}, "stream": false});
        assert_eq!(value(&filling(&plan(""), &prompts(), "", 2)), want);
    }

    #[test]
    fn adapters_are_given_as_asked() {
        let of = |words: &str| {
            let plan = plan(&format!("--lora-name a b {words}"));
            let adapters = adapters(&plan, 200, &mut Draws::new(42));
            let Some(Adapters::Each(names)) = adapters else { panic!("{adapters:?}") };
            names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()
        };
        let first = |names: &[String]| names.iter().filter(|name| *name == "a").count();
        let distinct = of("--lora-request-distribution distinct");
        assert_eq!(distinct[..3], ["a", "b", "a"]);
        let uniform = first(&of(""));
        assert!((70..130).contains(&uniform), "{uniform}");
        // Weights 1 and 1/9.
        let skewed = first(&of("--lora-request-distribution skewed --lora-zipf-alpha 9"));
        assert!((165..198).contains(&skewed), "{skewed}");
    }
}
