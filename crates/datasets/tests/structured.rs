//! The same flags give the Python tool's rows, for the sets whose rows have more than a prompt.
//!
//! `tests/golden` of the workspace holds what the Python tool made; its `PROVENANCE.md` tells how.
//! A crate that was packaged alone does not have it.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use serde_json::Value;
use servebench_core::random::Draws;
use servebench_core::{Prompt, Sample};
use servebench_datasets::{
    AgenticOptions, DatasetName, DatasetOptions, Loaded, MooncakeOptions, SharedPrefixOptions, load,
};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::path::{Path, PathBuf};
use std::str::FromStr;

fn workspace_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

fn hub() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("nowhere") })
}

/// One recorded command line and what the Python tool made of it.
struct Case {
    json: Value,
}

/// The cases of one file; none where the crate stands alone.
fn cases(file: &str) -> Vec<Case> {
    let path = workspace_tests().join("golden").join(file);
    let Ok(text) = std::fs::read_to_string(&path) else {
        // The workspace always has the file; its absence there is a mistake.
        assert!(!workspace_tests().join("fixtures").exists(), "{} is missing", path.display());
        return Vec::new();
    };
    let golden: Value = serde_json::from_str(&text).unwrap();
    golden["cases"].as_array().unwrap().iter().map(|json| Case { json: json.clone() }).collect()
}

impl Case {
    fn name(&self) -> &str {
        self.json["name"].as_str().unwrap()
    }

    fn rows(&self) -> &[Value] {
        self.json["rows"].as_array().unwrap()
    }

    /// The value of a flag; of a repeated flag the last.
    fn value(&self, flag: &str) -> Option<&str> {
        let words = self.json["argv"].as_array().unwrap();
        let at = words.iter().rposition(|word| word == flag)?;
        Some(words.get(at + 1).and_then(Value::as_str).unwrap_or_default())
    }

    fn number<T: FromStr>(&self, flag: &str) -> Option<T> {
        self.value(flag).and_then(|value| value.parse().ok())
    }

    fn has(&self, flag: &str) -> bool {
        self.value(flag).is_some()
    }

    fn tokenizer(&self) -> Tokenizer {
        let name = self.json["tokenizer"].as_str().unwrap();
        let folder = workspace_tests().join("fixtures/tokenizers").join(name);
        Tokenizer::load(folder.to_str().unwrap(), &hub()).unwrap()
    }

    fn options(&self) -> DatasetOptions {
        let fixtures = workspace_tests().join("fixtures");
        let path = self
            .value("--dataset-path")
            .map(|path| PathBuf::from(path.replace("{FIXTURES}", fixtures.to_str().unwrap())));
        DatasetOptions {
            name: DatasetName::from_name(self.value("--dataset-name").unwrap()).unwrap(),
            path,
            num_prompts: self.number("--num-prompts").unwrap(),
            sharegpt_output_len: self.number("--sharegpt-output-len"),
            tokenize_prompt: self.has("--tokenize-prompt"),
            ..DatasetOptions::default()
        }
    }

    fn load(&self, options: &DatasetOptions) -> Loaded {
        let mut draws = Draws::new(self.number("--seed").unwrap());
        let loaded = load(options, &self.tokenizer(), &hub(), &mut draws).unwrap();
        if let Some(probe) = self.json.get("probe") {
            check_probe(self.name(), probe, &mut draws);
        }
        loaded
    }
}

/// What the generators give next is what they give next in Python.
fn check_probe(name: &str, probe: &Value, draws: &mut Draws) {
    for want in probe["exponential"].as_array().unwrap() {
        let (got, want) = (draws.numpy.exponential(1.0 / 10.0), want.as_f64().unwrap());
        // The logarithm is the platform's; the words drawn decide all but its last bit.
        assert!((got - want).abs() <= want * 1e-15, "{name}: {got} is not {want}");
    }
    for want in probe["random"].as_array().unwrap() {
        let (got, want) = (draws.python.random(), want.as_f64().unwrap());
        assert_eq!(got.to_bits(), want.to_bits(), "{name}: {got} is not {want}");
    }
}

/// The prompt as the Python tool holds it: rounds of one user message are their text.
fn as_upstream(sample: &Sample) -> Value {
    match &sample.prompt {
        Prompt::Text(text) => text.as_str().into(),
        Prompt::Ids(ids) => ids.as_slice().into(),
        Prompt::Messages(messages) => messages.clone().into(),
        Prompt::Turns(turns) => turns.iter().map(|turn| Value::from(turn.clone())).collect(),
        other => panic!("{other:?}"),
    }
}

fn shared_prefix(case: &Case) -> DatasetOptions {
    let defaults = SharedPrefixOptions::default();
    let shape = SharedPrefixOptions {
        groups: case.number("--gsp-num-groups").unwrap(),
        prompts_per_group: case.number("--gsp-prompts-per-group").unwrap(),
        system_prompt_len: case.number("--gsp-system-prompt-len").unwrap(),
        question_len: case.number("--gsp-question-len").unwrap(),
        output_len: case.number("--gsp-output-len").unwrap(),
        range_ratio: case.number("--gsp-range-ratio").unwrap_or(defaults.range_ratio),
        zipf_alpha: case.number("--gsp-zipf-alpha"),
        zipf_seed: case.number("--seed").unwrap(),
        turns: case.number("--gsp-num-turns").unwrap_or(defaults.turns),
        ordered: case.has("--gsp-ordered"),
        fast_prepare: case.has("--gsp-fast-prepare"),
        routing_key: case.has("--gsp-send-routing-key"),
        ..defaults
    };
    DatasetOptions { shared_prefix: Some(shape), ..case.options() }
}

#[test]
fn shared_prefixes_are_the_python_tools() {
    let cases = cases("prefixes.json");
    assert!(cases.len() == 60 || cases.is_empty(), "{} cases", cases.len());
    for case in cases {
        let options = shared_prefix(&case);
        let loaded = case.load(&options);
        assert_eq!(loaded.samples.len(), case.rows().len(), "{}", case.name());
        assert_eq!(loaded.warnings, [""; 0], "{}", case.name());
        for (at, (sample, row)) in loaded.samples.iter().zip(case.rows()).enumerate() {
            let place = format!("{} row {at}", case.name());
            let turns = match &sample.prompt {
                Prompt::Turns(turns) => {
                    turns.iter().map(|turn| turn[0]["content"].clone()).collect()
                }
                _ => as_upstream(sample),
            };
            assert_eq!(turns, row["prompt"], "{place}");
            assert_eq!(row["output_len"], sample.output_len, "{place}");
            let group = sample.routing_key.as_ref().map(|key| key.parse::<u32>().unwrap());
            assert_eq!(row.get("group").cloned(), group.map(Value::from), "{place}");
            // Uncounted prompts have the length 1 there and the length asked for here.
            let uncounted = case.has("--gsp-fast-prepare") && !case.has("--tokenize-prompt");
            let (len, recorded) =
                if uncounted { (27, 1) } else { (sample.prompt_len, sample.prompt_len) };
            assert_eq!(row["prompt_len"], recorded, "{place}");
            assert_eq!(sample.prompt_len, len, "{place}");
        }
    }
}

#[test]
fn a_trace_makes_the_python_tools_requests() {
    let cases = cases("traces.json");
    assert!(cases.len() == 7 || cases.is_empty(), "{} cases", cases.len());
    for case in cases {
        let slowdown = case.number("--mooncake-slowdown-factor").unwrap_or(1.0);
        let rounds = case.number("--mooncake-num-rounds").unwrap_or(1);
        let replay = MooncakeOptions { slowdown, rounds, ..MooncakeOptions::default() };
        let options = DatasetOptions { mooncake: Some(replay.clone()), ..case.options() };
        let loaded = case.load(&options);
        let made: Vec<_> =
            loaded.samples.iter().map(|s| (as_upstream(s), Value::from(s.output_len))).collect();
        let recorded: Vec<_> =
            case.rows().iter().map(|r| (r["prompt"].clone(), r["output_len"].clone())).collect();
        assert_eq!(made, recorded, "{}", case.name());
        let want = case.json["total_input_tokens"].as_u64().unwrap();
        assert_eq!(loaded.input_tokens(), want, "{}", case.name());

        // The times are not in the recording: they are the file's.
        let offsets: &[f64] = match made.len() / rounds as usize {
            4 => &[0.0, 0.015, 0.04, 0.04],
            _ => &[0.0, 0.015, 0.04, 0.04, 0.05, 0.055],
        };
        let times = loaded.samples.iter().map(|sample| sample.timestamp.unwrap().as_secs_f64());
        let want = offsets.iter().flat_map(|at| vec![at * slowdown; rounds as usize]);
        assert!(times.zip(want).all(|(at, want)| (at - want).abs() < 1e-9), "{}", case.name());

        let messages = MooncakeOptions { messages: true, ..replay };
        let messages = DatasetOptions { mooncake: Some(messages), ..options };
        for (sample, text) in case.load(&messages).samples.iter().zip(&loaded.samples) {
            let Prompt::Messages(messages) = &sample.prompt else { panic!("{:?}", sample.prompt) };
            assert_eq!(messages.len() % 2, 1);
            let template = case.tokenizer();
            if let Ok(template) = template.chat_template() {
                let rendered = template.render(messages, true).unwrap();
                assert_eq!(Prompt::Text(rendered), text.prompt);
            }
            assert_eq!((sample.prompt_len, sample.timestamp), (text.prompt_len, text.timestamp));
        }
    }
}

#[test]
fn chat_requests_are_the_python_tools() {
    let cases = cases("requests.json");
    assert!(cases.len() == 3 || cases.is_empty(), "{} cases", cases.len());
    for case in cases {
        let loaded = case.load(&case.options());
        // Rows without messages count there as prompts, here they do not.
        let more = if case.name() == "plain" { 2 } else { 0 };
        assert_eq!(loaded.samples.len(), case.rows().len() + more, "{}", case.name());
        for (at, (sample, row)) in loaded.samples.iter().zip(case.rows()).enumerate() {
            let place = format!("{} row {at}", case.name());
            assert_eq!(as_upstream(sample), row["prompt"], "{place}");
            assert_eq!(row["prompt_len"], sample.prompt_len, "{place}");
            assert_eq!(row["output_len"], sample.output_len, "{place}");
            assert_eq!(
                row["extra_request_body"],
                Value::from(sample.extra_body.clone()),
                "{place}"
            );
        }
    }
}

#[test]
fn conversations_are_the_python_tools() {
    let cases = cases("conversations.json");
    assert!(cases.len() == 6 || cases.is_empty(), "{} cases", cases.len());
    for case in cases {
        let cut = AgenticOptions {
            offset: case.number("--dataset-offset").unwrap_or(0),
            max_turns: case.number("--agentic-max-turns").unwrap_or(0),
        };
        let loaded = case.load(&DatasetOptions { agentic: Some(cut), ..case.options() });
        assert_eq!(loaded.samples.len(), case.rows().len(), "{}", case.name());
        for (at, (sample, row)) in loaded.samples.iter().zip(case.rows()).enumerate() {
            let place = format!("{} row {at}", case.name());
            let mut turns = row["prompt"].clone();
            // The Python tool takes other fields than these out when it sends a message.
            for message in
                turns.as_array_mut().unwrap().iter_mut().flat_map(|t| t.as_array_mut().unwrap())
            {
                message.as_object_mut().unwrap().retain(|key, _| key == "role" || key == "content");
            }
            assert_eq!(as_upstream(sample), turns, "{place}");
            assert_eq!(row["prompt_len"], sample.prompt_len, "{place}");
            assert_eq!(row["output_len"], sample.output_len, "{place}");
        }
    }
}
