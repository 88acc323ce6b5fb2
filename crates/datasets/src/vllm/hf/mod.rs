//! `hf`: datasets of the hub, each with its own way from a row to a request.

mod bfcl;
mod classes;
mod rows;

use self::classes::{Class, Filter, Length};
use self::rows::Made;
use super::media::{Recording, message};
use super::shared::{finish, is_usual, need};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::DatasetError;
use crate::table::{HubDataset, Row, Table};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;
use servebench_core::random::{Draws, NumpyGenerator, PythonRandom};
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Hub, RepoKind, Tokenizer};
use std::path::{Component, Path};

pub(super) use bfcl::Call;

/// Rows that are read at a time, at least.
const BATCH: usize = 64;

/// Which rows of the hub are taken, and what becomes of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HfOptions {
    /// The dataset's name on the hub, where the path is that of a copy.
    pub name: Option<String>,
    /// Its part.
    pub subset: Option<String>,
    /// Its split.
    pub split: Option<String>,
    /// Output length, in place of the dataset's own.
    pub output_len: Option<u32>,
    /// Make messages, for chat endpoints, of what a chat template would join.
    pub messages: bool,
    /// Of edit datasets, the least and the most distance of an edit.
    pub distance: (f64, f64),
    /// Of speech, the least and the most seconds of a recording; `None`: whatever it has.
    pub seconds: (Option<f64>, Option<f64>),
    /// Of the function-calling leaderboard, the categories.
    pub categories: Vec<String>,
}

impl HfOptions {
    /// Whether a recording is as long as is asked for. One of unknown length is not.
    fn hears(&self, seconds: Option<f64>) -> bool {
        match self.seconds {
            (None, None) => true,
            (least, most) => seconds.is_some_and(|seconds| {
                least.is_none_or(|least| seconds >= least)
                    && most.is_none_or(|most| seconds <= most)
            }),
        }
    }

    /// Whether the dataset of that path or name has messages with media, or with tools: what only some
    /// backends take. `Err`: no such dataset is known.
    pub fn needs_messages(&self, path: Option<&Path>) -> Result<bool, DatasetError> {
        Ok(match Class::of(path, self.name.as_deref())? {
            None => true,
            Some(class) => class.has_media,
        })
    }
}

pub(super) fn load(
    own: &HfOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    hub: Option<&Hub>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let tokenizer = need(tokenizer, "hf")?;
    let class = Class::of(options.path.as_deref(), own.name.as_deref())?;
    let path = options.path.as_deref().or(own.name.as_deref().map(Path::new));
    let path = path.ok_or(DatasetError::NoPath { name: "hf" })?;
    // Whatever the dataset, repeats of its rows are drawn anew.
    draws.python = PythonRandom::new(options.seed);
    let Some(class) = class else {
        return bfcl::load(own, path, options, tokenizer, hub, draws);
    };
    let subset = match class.subset {
        classes::Subset::Never => None,
        classes::Subset::Or(default) => own.subset.as_deref().or(default),
    };
    let split = own.split.as_deref().or(class.split).ok_or_else(|| DatasetError::Option {
        flag: "--hf-split",
        problem: format!("must be given for {}: it has no usual split", path.display()),
    })?;
    let mut table = open(path, subset, split, hub);
    if table.is_err() && own.subset.is_none() && subset.is_some() && path.exists() {
        // A copy need not have the parts that the dataset has on the hub.
        table = open(path, None, split, hub);
    }
    let table = table?;
    let order = order(table.len(), options);
    let wanted = options.num_prompts.unwrap_or(usize::MAX);
    let mut samples: Vec<Sample> = Vec::new();
    let mut unheard = 0;
    let mut rest = order.as_slice();
    while samples.len() < wanted && !rest.is_empty() {
        let missing = (wanted - samples.len()).max(BATCH);
        let (batch, later) = rest.split_at(rest.len().min(missing));
        rest = later;
        let rows = table.pick(class.columns, batch)?;
        let read: Vec<_> = rows
            .par_iter()
            .map(|row| sample(row, class, (own, path, hub), options, tokenizer))
            .collect();
        for sample in read {
            if samples.len() == wanted {
                break;
            }
            match sample? {
                Some(sample) => samples.push(sample),
                None => unheard += u64::from(class.is_speech),
            }
        }
    }
    let skipped = format!("{} rows, none of usual lengths,", table.len());
    let mut loaded = finish(samples, options, draws, (path, skipped))?;
    if unheard > 0 {
        let text =
            "recordings are left out: they are shorter or longer than is asked for, or do not tell";
        loaded.warnings.push(format!("{unheard} {text}"));
    }
    Ok(loaded)
}

/// The table in a file or folder, else of that name on the hub.
pub(super) fn open(
    path: &Path,
    config: Option<&str>,
    split: &str,
    hub: Option<&Hub>,
) -> Result<Table, DatasetError> {
    if !path.exists()
        && let (Some(hub), Some(repo)) = (hub, path.to_str().filter(|repo| Hub::is_repo_id(repo)))
    {
        return Table::fetch(hub, HubDataset { repo, config, split });
    }
    Table::open(path, config, split)
}

/// A recording that a row names, in the copy of its dataset or on the hub.
fn beside(file: &str, path: &Path, hub: Option<&Hub>) -> Result<Recording, String> {
    let inside = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    if !inside {
        return Err(format!("{file} is no file of the dataset"));
    }
    let here = if path.is_file() { path.parent().unwrap_or(path) } else { path }.join(file);
    let fetched = match (hub, path.to_str()) {
        (Some(hub), Some(repo)) if !path.exists() && Hub::is_repo_id(repo) => {
            hub.fetch(RepoKind::Dataset, repo, file).map_err(|error| error.to_string())?
        }
        _ => here,
    };
    Recording::read(&fetched.to_string_lossy())
}

/// The order in which rows are taken: that of a whole dataset that is shuffled, as with `--no-stream`.
fn order(rows: usize, options: &VllmDatasetOptions) -> Vec<usize> {
    match u32::try_from(rows) {
        Ok(rows) if !options.disable_shuffle => {
            let order = NumpyGenerator::new(options.seed).permutation(rows);
            order.into_iter().map(|row| row as usize).collect()
        }
        _ => (0..rows).collect(),
    }
}

/// The request of a row; `None` for one that is filtered out.
fn sample(
    row: &Row,
    class: &Class,
    (own, path, hub): (&HfOptions, &Path, Option<&Hub>),
    options: &VllmDatasetOptions,
    tokenizer: &Tokenizer,
) -> Result<Option<Sample>, DatasetError> {
    let Some(mut made) = (class.make)(row, own, path)? else { return Ok(None) };
    if let Some(file) = &made.beside {
        made = Made::spoken(beside(file, path, hub).map_err(|problem| row.bad(problem))?);
    }
    let Made { system, mut text, reply, media, seconds, .. } = made;
    if class.is_speech {
        if !own.hears(seconds) {
            return Ok(None);
        }
        rows::transcribe(tokenizer.name()).clone_into(&mut text);
    }
    let mut messages = vec![json!({"role": "user", "content": text})];
    if let Some(system) = &system {
        messages.insert(0, json!({"role": "system", "content": system}));
    }
    let template = class.is_templated && (system.is_some() || !options.skip_chat_template);
    let render = || -> Result<String, DatasetError> {
        Ok(tokenizer.chat_template()?.render(&messages, true)?)
    };
    let sent = if template && !own.messages { render()? } else { text };
    let prompt_len = match &system {
        Some(system) if own.messages => tokenizer.count(&format!("{system}\n{sent}"), true)?,
        _ => tokenizer.count(&sent, true)?,
    };
    let fixed = own.output_len.filter(|_| class.length != Length::OfReplyAlways);
    let output_len = match (fixed, class.length, reply) {
        (Some(len), ..) | (None, Length::Fixed(len), _) => len,
        (None, _, Some(reply)) => tokenizer.count(&reply, !class.counts_bare_reply)?,
        (None, _, None) => return Ok(None),
    };
    let usual = match class.filter {
        Filter::None => true,
        Filter::Usual => fixed.is_some() || is_usual(prompt_len, output_len, false),
        Filter::Long => {
            let total = prompt_len.saturating_add(output_len);
            fixed.is_some()
                || (prompt_len >= 4 && output_len >= 4 && prompt_len <= 2048 && total <= 32_000)
        }
        Filter::Always => is_usual(prompt_len, output_len, false),
    };
    if !usual || (fixed.is_none() && output_len == 0) {
        return Ok(None);
    }
    let prompt = if class.has_media || !media.is_empty() {
        message(&sent, media)
    } else if system.is_some() && own.messages {
        Prompt::Messages(messages)
    } else {
        Prompt::Text(sent)
    };
    let counted = Counted::Tokenizer;
    Ok(Some(Sample { prompt, prompt_len, counted, output_len, ..Sample::default() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::VllmDataset;
    use serde_json::Value;

    pub(super) fn options(name: &str) -> HfOptions {
        HfOptions {
            name: Some(name.to_owned()),
            subset: None,
            split: Some("train".to_owned()),
            output_len: None,
            messages: false,
            distance: (0.0, 1.0),
            seconds: (None, None),
            categories: Vec::new(),
        }
    }

    fn load_of(own: &HfOptions, rows: &[Value], n: usize) -> Result<VllmLoaded, DatasetError> {
        let file = tempfile::NamedTempFile::with_suffix(".jsonl").unwrap();
        let text: Vec<String> = rows.iter().map(Value::to_string).collect();
        std::fs::write(file.path(), text.join("\n")).unwrap();
        let options = VllmDatasetOptions {
            path: Some(file.path().to_owned()),
            num_prompts: Some(n),
            no_oversample: true,
            disable_shuffle: true,
            skip_chat_template: true,
            ..VllmDatasetOptions::new(VllmDataset::Hf(own.clone()))
        };
        load(own, &options, Some(&Tokenizer::byte_level()), None, &mut Draws::new(0))
    }

    fn texts(loaded: &VllmLoaded) -> Vec<(&str, u32)> {
        loaded
            .samples
            .iter()
            .filter_map(|sample| match &sample.prompt {
                Prompt::Text(text) => Some((text.as_str(), sample.output_len)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_shuffle_is_numpys() {
        // numpy.random.default_rng(42).permutation(8)
        let dataset = VllmDataset::Hf(options("openai/gsm8k"));
        let with = |seed| VllmDatasetOptions { seed, ..VllmDatasetOptions::new(dataset.clone()) };
        assert_eq!(order(8, &with(42)), [3, 4, 2, 7, 6, 1, 5, 0]);
        assert_eq!(order(0, &with(42)), Vec::<usize>::new());
    }

    #[test]
    fn questions_are_prompts() {
        let rows = [json!({"question": "one and one", "answer": "x"}), json!({"question": "two"})];
        let loaded = load_of(&options("openai/gsm8k"), &rows, 5).unwrap();
        assert_eq!(texts(&loaded), [("one and one", 256), ("two", 256)]);
        let short = HfOptions { output_len: Some(7), ..options("openai/gsm8k") };
        assert_eq!(texts(&load_of(&short, &rows, 1).unwrap()), [("one and one", 7)]);
    }

    #[test]
    fn a_copy_has_no_parts() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.jsonl"), r#"{"question": "how many"}"#).unwrap();
        let own = options("openai/gsm8k");
        let options = VllmDatasetOptions {
            path: Some(folder.path().to_owned()),
            num_prompts: Some(1),
            skip_chat_template: true,
            ..VllmDatasetOptions::new(VllmDataset::Hf(own.clone()))
        };
        let tokenizer = Tokenizer::byte_level();
        let loaded = load(&own, &options, Some(&tokenizer), None, &mut Draws::new(0)).unwrap();
        assert_eq!(texts(&loaded), [("how many", 256)]);
        let named = HfOptions { subset: Some("main".to_owned()), ..own };
        assert!(load(&named, &options, Some(&tokenizer), None, &mut Draws::new(0)).is_err());
    }

    #[test]
    fn replies_tell_the_length() {
        let rows = [
            json!({"problem": "how many", "solution": "seven"}),
            json!({"problem": "why", "solution": "because of it"}),
            json!({"problem": "how much", "solution": ""}),
        ];
        let loaded = load_of(&options("AI-MO/NuminaMath-CoT"), &rows, 9).unwrap();
        assert_eq!(texts(&loaded), [("how many", 5)]);
        let fixed = HfOptions { output_len: Some(3), ..options("AI-MO/NuminaMath-CoT") };
        assert_eq!(load_of(&fixed, &rows, 9).unwrap().samples.len(), 3);
    }

    #[test]
    fn edits_are_chosen_by_distance() {
        let row = |distance: f64| json!({"code": "x = 1", "change_request": "y", "norm_distance": distance});
        let near = HfOptions { distance: (0.2, 0.5), ..options("vdaita/edit_5k_char") };
        let loaded = load_of(&near, &[row(0.1), row(0.3), row(0.6)], 5).unwrap();
        assert_eq!(loaded.samples.len(), 1);
        assert!(texts(&loaded)[0].0.contains("```python\nx = 1\n```"));
    }

    #[test]
    fn a_system_prompt_is_a_message_for_chat() {
        let rows =
            [json!({"system_prompt": "be kind", "question": "hello?", "output": "hi there"})];
        let chat = HfOptions { messages: true, ..options("mgoin/mlperf-inference-llama2-data") };
        let loaded = load_of(&chat, &rows, 1).unwrap();
        let want = json!([{"role": "system", "content": "be kind"},
            {"role": "user", "content": "hello?"}]);
        assert_eq!(serde_json::to_value(&loaded.samples[0].prompt).unwrap()["messages"], want);
        assert_eq!(loaded.samples[0].output_len, 8);
    }

    #[test]
    fn images_go_after_the_question() {
        let rows = [json!({"question": "What? Options: A, B", "image": "http://x/y.png"})];
        let own = HfOptions { split: None, ..options("Lin-Chen/MMStar") };
        let loaded = load_of(&own, &rows, 1).unwrap();
        let sent = serde_json::to_value(&loaded.samples[0].prompt).unwrap();
        let content = &sent["messages"][0]["content"];
        assert_eq!(content[0]["text"], "What?");
        assert_eq!(content[1]["image_url"]["url"], "http://x/y.png");
    }

    #[test]
    fn speech_is_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"fLaC...").unwrap();
        let rows = [json!({"audio": {"path": file.path().to_str().unwrap(), "bytes": null}})];
        let loaded = load_of(&options("openslr/librispeech_asr"), &rows, 1).unwrap();
        let sent = serde_json::to_value(&loaded.samples[0].prompt).unwrap();
        let content = &sent["messages"][0]["content"];
        assert_eq!(
            (&content[0]["text"], &content[1]["input_audio"]["format"]),
            (&json!(""), &json!("flac"))
        );
        assert_eq!(loaded.samples[0].output_len, 1024);
        assert!(rows::transcribe("openai/whisper-tiny").ends_with("<|notimestamps|>"));
    }

    /// A recording of so many tenths of a second.
    fn tone(tenths: usize) -> Vec<u8> {
        super::super::media::wav(&vec![0.0; 800 * tenths], 1, 8000)
    }

    #[test]
    fn recordings_are_chosen_by_their_length() {
        let folder = tempfile::tempdir().unwrap();
        let rows: Vec<Value> = [1, 5, 9, 20]
            .map(|tenths| {
                let path = folder.path().join(format!("{tenths}.wav"));
                std::fs::write(&path, tone(tenths)).unwrap();
                json!({"audio": {"path": path.to_str().unwrap(), "bytes": null}})
            })
            .into();
        let own = HfOptions { seconds: (Some(0.3), Some(1.0)), ..options("facebook/voxpopuli") };
        let loaded = load_of(&own, &rows, 9).unwrap();
        assert_eq!(loaded.samples.len(), 2);
        assert!(loaded.warnings.iter().any(|text| text.starts_with("2 recordings are left out")));
        // Those behind the last one that is needed are not looked at.
        let loaded = load_of(&own, &rows, 1).unwrap();
        assert!(loaded.warnings.iter().any(|text| text.starts_with("1 recordings are left out")));
        let all = load_of(&options("facebook/voxpopuli"), &rows, 9).unwrap();
        assert_eq!((all.samples.len(), all.warnings.len()), (4, 1));
    }

    #[test]
    fn recordings_may_be_beside_the_table() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("media")).unwrap();
        std::fs::write(folder.path().join("media/a.wav"), tone(3)).unwrap();
        let table = folder.path().join("train.jsonl");
        let load = |url: &str| {
            std::fs::write(&table, json!({"url": url, "transcript": "hello"}).to_string()).unwrap();
            let own = options("ArtificialAnalysis/Earnings22-Cleaned-AA");
            let options = VllmDatasetOptions {
                path: Some(folder.path().to_owned()),
                num_prompts: Some(1),
                ..VllmDatasetOptions::new(VllmDataset::Hf(own.clone()))
            };
            load(&own, &options, Some(&Tokenizer::byte_level()), None, &mut Draws::new(0))
        };
        let loaded = load("media/a.wav").unwrap();
        let sent = serde_json::to_value(&loaded.samples[0].prompt).unwrap();
        assert_eq!(sent["messages"][0]["content"][1]["input_audio"]["format"], "wav");
        for outside in ["../a.wav", "/etc/passwd"] {
            let error = load(outside).unwrap_err().to_string();
            assert!(error.contains("no file of the dataset"), "{error}");
        }
    }

    #[test]
    fn what_is_not_known_is_said() {
        let error = load_of(&options("someone/something"), &[], 1).unwrap_err().to_string();
        assert!(error.contains("openai/gsm8k") && error.contains("--hf-name"), "{error}");
        let split = HfOptions { split: None, ..options("Aeala/ShareGPT_Vicuna_unfiltered") };
        let error = load_of(&split, &[], 1).unwrap_err().to_string();
        assert!(error.starts_with("--hf-split"), "{error}");
        let error = load_of(&options("openai/gsm8k"), &[json!({"answer": 1})], 1).unwrap_err();
        assert!(error.to_string().contains("`question`"), "{error}");
    }
}
