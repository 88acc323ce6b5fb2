//! The same seed gives the Python tool's prompts, lengths and generator state.
//!
//! `tests/golden/datasets.json` of the workspace was made by the Python tool itself; its
//! `PROVENANCE.md` tells how. A crate that was packaged alone does not have it.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use serde_json::Value;
use servebench_core::random::Draws;
use servebench_core::{Prompt, Sample};
use servebench_datasets::{DatasetName, DatasetOptions, Loaded, load};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::path::{Path, PathBuf};

fn workspace_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

struct Case<'a> {
    json: &'a Value,
}

impl Case<'_> {
    fn name(&self) -> &str {
        self.json["name"].as_str().unwrap()
    }

    /// The value of a flag; of a repeated flag the last.
    fn flag(&self, flag: &str) -> Option<String> {
        let words = self.json["argv"].as_array().unwrap();
        let at = words.iter().rposition(|word| word == flag)?;
        let fixtures = workspace_tests().join("fixtures");
        let value = words.get(at + 1).and_then(Value::as_str).unwrap_or_default();
        Some(value.replace("{FIXTURES}", fixtures.to_str().unwrap()))
    }

    fn number(&self, flag: &str) -> Option<u32> {
        self.flag(flag).map(|value| value.parse().unwrap())
    }

    fn options(&self) -> DatasetOptions {
        let defaults = DatasetOptions::default();
        DatasetOptions {
            name: DatasetName::from_name(&self.flag("--dataset-name").unwrap()).unwrap(),
            path: self.flag("--dataset-path").map(PathBuf::from),
            num_prompts: self.number("--num-prompts").unwrap() as usize,
            random_input_len: self.number("--random-input-len").unwrap_or(1024),
            random_output_len: self.number("--random-output-len").unwrap_or(1024),
            random_range_ratio: self
                .flag("--random-range-ratio")
                .map_or(0.0, |value| value.parse().unwrap()),
            sharegpt_output_len: self.number("--sharegpt-output-len"),
            sharegpt_context_len: self.number("--sharegpt-context-len"),
            prompt_suffix: self.flag("--prompt-suffix").unwrap_or_default(),
            apply_chat_template: self.flag("--apply-chat-template").is_some(),
            tokenize_prompt: self.flag("--tokenize-prompt").is_some(),
            ..defaults
        }
    }

    fn tokenizer(&self) -> Tokenizer {
        let name = self.json["tokenizer"].as_str().unwrap();
        let folder = workspace_tests().join("fixtures/tokenizers").join(name);
        Tokenizer::load(folder.to_str().unwrap(), &offline()).unwrap()
    }

    fn check(&self) {
        let tokenizer = self.tokenizer();
        let mut draws = Draws::new(self.number("--seed").unwrap());
        let loaded = load(&self.options(), &tokenizer, &offline(), &mut draws).unwrap();
        self.check_rows(&loaded, &tokenizer);
        self.check_probe(&mut draws);
    }

    fn check_rows(&self, loaded: &Loaded, tokenizer: &Tokenizer) {
        let rows = self.json["rows"].as_array().unwrap();
        assert_eq!(loaded.samples.len(), rows.len(), "{}: rows", self.name());
        let asked = self.number("--num-prompts").unwrap() as usize;
        assert!(rows.len() == asked || !loaded.warnings.is_empty(), "{}: warning", self.name());
        for (at, (sample, row)) in loaded.samples.iter().zip(rows).enumerate() {
            let place = format!("{} row {at}", self.name());
            let sample = &self.as_upstream(sample, tokenizer);
            match &sample.prompt {
                Prompt::Text(text) => assert_eq!(row["prompt"], text.as_str(), "{place}"),
                Prompt::Ids(ids) => {
                    assert_eq!(row["prompt"], Value::from(ids.as_slice()), "{place}");
                }
                other => panic!("{place}: {other:?}"),
            }
            assert_eq!(row["prompt_len"], sample.prompt_len, "{place}: prompt length");
            assert_eq!(row["output_len"], sample.output_len, "{place}: output length");
        }
    }

    /// Python takes the begin-of-sequence text out of a rendered prompt wherever it stands, out of
    /// the user's words too; here only a leading one goes. Nothing else may differ.
    fn as_upstream(&self, sample: &Sample, tokenizer: &Tokenizer) -> Sample {
        let mut sample = sample.clone();
        if let (Prompt::Text(text), Some(bos), true) =
            (&sample.prompt, tokenizer.bos_token(), self.options().apply_chat_template)
            && text.contains(bos)
        {
            let text = text.replace(bos, "");
            sample.prompt_len = tokenizer.count(&text, true).unwrap();
            sample.prompt = Prompt::Text(text);
        }
        sample
    }

    /// What the generators give next is what they give next in Python.
    fn check_probe(&self, draws: &mut Draws) {
        let probe = &self.json["probe"];
        for want in probe["exponential"].as_array().unwrap() {
            let got = draws.numpy.exponential(1.0 / 10.0);
            let want = want.as_f64().unwrap();
            // The logarithm is the platform's; the words drawn decide all but its last bit.
            assert!((got - want).abs() <= want * 1e-15, "{}: {got} is not {want}", self.name());
        }
        for want in probe["random"].as_array().unwrap() {
            let (got, want) = (draws.python.random(), want.as_f64().unwrap());
            assert_eq!(got.to_bits(), want.to_bits(), "{}: {got} is not {want}", self.name());
        }
    }
}

fn offline() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("nowhere") })
}

#[test]
fn the_same_seed_gives_the_python_tools_rows() {
    let path = workspace_tests().join("golden/datasets.json");
    let Ok(text) = std::fs::read_to_string(&path) else {
        // The workspace always has the file; its absence there is a mistake.
        assert!(!workspace_tests().join("fixtures").exists(), "{} is missing", path.display());
        return;
    };
    let golden: Value = serde_json::from_str(&text).unwrap();
    let cases = golden["cases"].as_array().unwrap();
    assert!(cases.len() > 50, "only {} cases", cases.len());
    for json in cases {
        Case { json }.check();
    }
}
