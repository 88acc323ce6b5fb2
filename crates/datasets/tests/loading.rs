//! What `load` promises beside parity: errors, warnings, exact lengths.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use serde_json::{Value, json};
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_datasets::{
    DatasetError, DatasetName, DatasetOptions, Loaded, count_true_lengths, fuzzing, load,
    measure_drift,
};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::error::Error as _;
use std::path::PathBuf;
use tempfile::TempDir;

fn hub() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("no/such/cache") })
}

fn run(options: &DatasetOptions, tokenizer: &Tokenizer) -> Result<Loaded, DatasetError> {
    load(options, tokenizer, &hub(), &mut Draws::new(42))
}

fn bytes(options: &DatasetOptions) -> Result<Loaded, DatasetError> {
    run(options, &Tokenizer::byte_level())
}

/// A file of the given text.
fn file(text: &str) -> (TempDir, Option<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    std::fs::write(&path, text).unwrap();
    (folder, Some(path))
}

fn conversations(pairs: &[(&str, &str)]) -> Value {
    pairs
        .iter()
        .map(|(a, b)| json!({"conversations": [{"value": a}, {"value": b}]}))
        .collect::<Value>()
}

fn lines(pairs: &[(&str, &str)]) -> String {
    let rows = conversations(pairs);
    rows.as_array().unwrap().iter().flat_map(|row| [row.to_string(), "\n".to_owned()]).collect()
}

/// Pairs merge when text is encoded again; `<s>` is put before every sequence.
fn drifting(special: bool) -> Tokenizer {
    let mut tokenizer = json!({
        "version": "1.0", "added_tokens": [], "decoder": {"type": "Fuse"},
        "model": {
            "type": "BPE", "vocab": {"a": 0, "b": 1, "ba": 2, "ab": 3},
            "merges": ["b a", "a b"]
        }
    });
    let mut config = json!({});
    if special {
        tokenizer["added_tokens"] = json!([{
            "id": 4, "content": "<s>", "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": true
        }]);
        config = json!({"bos_token": "<s>", "add_bos_token": true});
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    std::fs::write(folder.path().join("tokenizer_config.json"), config.to_string()).unwrap();
    Tokenizer::load(folder.path().to_str().unwrap(), &hub()).unwrap()
}

fn text(sample: &Sample) -> &str {
    match &sample.prompt {
        Prompt::Text(text) => text,
        other => panic!("{other:?}"),
    }
}

fn random_ids(num_prompts: usize, len: u32, ratio: f64) -> DatasetOptions {
    DatasetOptions {
        name: DatasetName::RandomIds,
        num_prompts,
        random_input_len: len,
        random_output_len: 5,
        random_range_ratio: ratio,
        ..DatasetOptions::default()
    }
}

#[test]
fn fewer_rows_than_asked_are_a_warning_with_the_reasons() {
    let rows = [("one prompt", "one reply"), ("x", "too short"), ("two", "replies"), ("3rd", "ok")];
    for (name, text) in [
        (DatasetName::ShareGpt, conversations(&rows).to_string()),
        (DatasetName::Custom, lines(&rows)),
    ] {
        let (_folder, path) = file(&text);
        let loaded =
            bytes(&DatasetOptions { name, path, num_prompts: 10, ..DatasetOptions::default() })
                .unwrap();
        assert_eq!(loaded.samples.len(), 3);
        let warning = loaded.warnings.concat();
        assert!(warning.contains("3 of 10"), "{warning}");
        assert!(warning.contains("1 skipped (1 too short from"), "{warning}");
        assert_eq!(loaded.input_tokens(), 10 + 3 + 3);
        assert_eq!(loaded.output_tokens(), 9 + 7 + 2);
        let (_folder, path) = file(&text);
        let all = DatasetOptions { name, path, num_prompts: 4, ..DatasetOptions::default() };
        let all = DatasetOptions { require_rows: true, ..all };
        let error = bytes(&all).unwrap_err().to_string();
        assert!(error.starts_with("--require-rows: only 3 of 4 prompts"), "{error}");
        assert!(bytes(&DatasetOptions { num_prompts: 3, ..all }).is_ok());
    }
}

#[test]
fn no_usable_row_is_an_error() {
    let (_folder, path) = file(&conversations(&[("x", "y"), ("z", "")]).to_string());
    let options = DatasetOptions { path, num_prompts: 3, ..DatasetOptions::default() };
    let error = bytes(&options).unwrap_err().to_string();
    assert!(
        error.starts_with("no usable rows: 2 skipped (2 too short from row 1 on) in "),
        "{error}"
    );
    let (_folder, path) = file("[]");
    let random = DatasetOptions { name: DatasetName::Random, path, ..options };
    let error = bytes(&random).unwrap_err().to_string();
    assert!(error.starts_with("no usable rows: 0 skipped in "), "{error}");
}

#[test]
fn lines_that_are_no_json_are_counted() {
    let text = format!("{}nonsense\n\n{{\n", lines(&[("prompt", "reply")]));
    let (_folder, path) = file(&text);
    let name = DatasetName::Custom;
    let options = DatasetOptions { name, path, num_prompts: 1, ..DatasetOptions::default() };
    let warning = bytes(&options).unwrap().warnings.concat();
    assert!(warning.contains("2 skipped (2 no JSON from line 2 on)"), "{warning}");
}

#[test]
fn a_wrong_path_is_an_error_and_no_download() {
    for name in [DatasetName::ShareGpt, DatasetName::Custom, DatasetName::Random] {
        let path = Some(PathBuf::from("no/such/file.json"));
        let options = DatasetOptions { name, path, ..DatasetOptions::default() };
        let error = bytes(&options).unwrap_err();
        assert!(matches!(error, DatasetError::Read { .. }), "{error}");
        assert!(error.to_string().contains("no/such/file.json"), "{error}");
    }
}

#[test]
fn mistakes_in_a_file_are_located() {
    let (_folder, path) = file("[{},\n{},\n{]");
    for name in [DatasetName::ShareGpt, DatasetName::Random] {
        let options = DatasetOptions { name, path: path.clone(), ..DatasetOptions::default() };
        let error = bytes(&options).unwrap_err();
        assert!(error.to_string().contains("after 2 rows"), "{error}");
        assert!(error.source().unwrap().to_string().contains("line 3"));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    std::fs::write(&path, b"[\"\xff\"]").unwrap();
    let options = DatasetOptions { path: Some(path), ..DatasetOptions::default() };
    assert!(matches!(bytes(&options), Err(DatasetError::NotText { at: 2, .. })));
}

#[test]
fn without_a_path_the_corpus_comes_from_the_hub() {
    let cache = tempfile::tempdir().unwrap();
    let repo = cache.path().join("datasets--anon8231489123--ShareGPT_Vicuna_unfiltered");
    let snapshot = repo.join("snapshots/c0ffee");
    std::fs::create_dir_all(&snapshot).unwrap();
    std::fs::create_dir_all(repo.join("refs")).unwrap();
    std::fs::write(repo.join("refs/main"), "c0ffee").unwrap();
    let corpus = conversations(&[("prompt", "reply")]).to_string();
    std::fs::write(snapshot.join("ShareGPT_V3_unfiltered_cleaned_split.json"), corpus).unwrap();
    let full = Hub::new(HubConfig { offline: true, ..HubConfig::new(cache.path()) });
    for name in [DatasetName::ShareGpt, DatasetName::Random] {
        // An empty path is no path, as on the command line of the Python tool.
        let path = Some(PathBuf::new());
        let options = DatasetOptions { name, path, num_prompts: 1, ..DatasetOptions::default() };
        let tokenizer = Tokenizer::byte_level();
        let loaded = load(&options, &tokenizer, &full, &mut Draws::new(1)).unwrap();
        assert!(text(&loaded.samples[0]).starts_with('p'));

        let error = load(&options, &tokenizer, &hub(), &mut Draws::new(1)).unwrap_err();
        let cause = error.source().unwrap().to_string();
        let message = format!("{error}: {cause}");
        for part in [
            "--dataset-path",
            "--dataset-name random-ids",
            "ShareGPT_V3_unfiltered_cleaned_split.json",
            "no/such/cache",
        ] {
            assert!(message.contains(part), "{message}");
        }
    }
    let custom = DatasetOptions { name: DatasetName::Custom, ..DatasetOptions::default() };
    assert!(matches!(bytes(&custom), Err(DatasetError::NoPath { .. })));
}

#[test]
fn a_missing_chat_template_is_an_error() {
    let (_folder, path) = file(&conversations(&[("prompt", "reply")]).to_string());
    let options = DatasetOptions { path, apply_chat_template: true, ..DatasetOptions::default() };
    let error = bytes(&options).unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("--apply-chat-template"), "{cause}");
}

#[test]
fn nominal_lengths_drift_and_it_is_said() {
    let tokenizer = drifting(false);
    let loaded = run(&random_ids(20, 30, 1.0), &tokenizer).unwrap();
    assert!(loaded.samples.iter().all(|sample| sample.counted == Counted::Nominal));
    let drift = measure_drift(&loaded.samples, &tokenizer, usize::MAX).unwrap();
    let real = count_true_lengths(&loaded.samples, &tokenizer, false).unwrap();
    assert_eq!((drift.checked, drift.off), (20, real.iter().filter(|&&n| n != 30).count()));
    assert!(drift.off > 0);
    let mean = real.iter().sum::<u32>() as f64 / 20.0;
    assert!((drift.real_mean - mean).abs() < 1e-9);
    assert!(drift.to_string().contains("asked 30.0"), "{drift}");
    let few = measure_drift(&loaded.samples, &tokenizer, 100).unwrap();
    assert!(few.checked < 20 && few.checked > 0);
    assert!(few.to_string().contains(&format!("({} of 20 checked)", few.checked)), "{few}");
    let exact = Tokenizer::byte_level();
    let ids = DatasetOptions { tokenize_prompt: true, ..random_ids(5, 9, 1.0) };
    let loaded = run(&ids, &exact).unwrap();
    assert!(measure_drift(&loaded.samples, &exact, 1).unwrap().is_none());
    assert_eq!(count_true_lengths(&loaded.samples, &exact, true).unwrap(), [9; 5]);
}

#[test]
fn exact_lengths_are_the_servers_counts() {
    for special in [false, true] {
        let tokenizer = drifting(special);
        let (_folder, path) = file(&conversations(&[("abbabaab", "x"), ("bab", "y")]).to_string());
        let ids = random_ids(50, 40, 0.1);
        let corpus =
            DatasetOptions { name: DatasetName::Random, path, num_prompts: 2, ..ids.clone() };
        for options in [ids, corpus] {
            let loaded =
                run(&DatasetOptions { exact_lengths: true, ..options.clone() }, &tokenizer)
                    .unwrap();
            assert_eq!(loaded.warnings, Vec::<String>::new());
            // Without special tokens in the text, with as many as the server adds.
            let asked =
                run(&DatasetOptions { tokenize_prompt: true, ..options }, &tokenizer).unwrap();
            let real = count_true_lengths(&loaded.samples, &tokenizer, true).unwrap();
            for ((sample, asked), real) in loaded.samples.iter().zip(asked.samples).zip(real) {
                assert!(!text(sample).contains("<s>"));
                assert_eq!((sample.prompt_len, sample.counted), (real, Counted::Tokenizer));
                // A prompt has at least one token of its own.
                assert_eq!(real, asked.prompt_len.max(1 + u32::from(special)));
                assert_eq!(sample.output_len, asked.output_len);
            }
        }
    }
}

#[test]
fn halves_of_characters_are_left_out_where_lengths_are_exact() {
    let exact = DatasetOptions { exact_lengths: true, ..random_ids(30, 64, 0.0) };
    let loaded = bytes(&exact).unwrap();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    assert!(loaded.samples.iter().all(|sample| text(sample).is_ascii()));
}

#[test]
fn what_cannot_be_exact_is_reported() {
    // Whatever is encoded, the one word of the vocabulary comes back joined to its neighbours.
    let tokenizer = json!({
        "version": "1.0", "added_tokens": [], "pre_tokenizer": {"type": "WhitespaceSplit"},
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": {"word": 0, "[UNK]": 1}, "unk_token": "[UNK]"}
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    std::fs::write(&path, tokenizer.to_string()).unwrap();
    let tokenizer = Tokenizer::load(path.to_str().unwrap(), &hub()).unwrap();
    let exact = DatasetOptions { exact_lengths: true, ..random_ids(3, 8, 1.0) };
    let loaded = run(&exact, &tokenizer).unwrap();
    let real = count_true_lengths(&loaded.samples, &tokenizer, true).unwrap();
    assert!(loaded.samples.iter().map(|sample| sample.prompt_len).eq(real));
    let warning = loaded.warnings.concat();
    assert!(warning.contains("3 of 3 prompts could not be made exact"), "{warning}");
}

#[test]
fn exact_lengths_draw_what_parity_draws() {
    let tokenizer = drifting(false);
    let after = |options: &DatasetOptions| {
        let mut draws = Draws::new(7);
        load(options, &tokenizer, &hub(), &mut draws).unwrap();
        draws
    };
    let options = random_ids(10, 20, 0.0);
    assert_eq!(after(&options), after(&DatasetOptions { exact_lengths: true, ..options.clone() }));
}

fn conversation_json() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("\"ab\"".to_owned()),
        Just("\"\"".to_owned()),
        Just("null".to_owned()),
        Just("\"\\ud800\"".to_owned()),
        Just("7".to_owned()),
        Just("[]".to_owned()),
    ];
    let turn = (prop_oneof![Just("value"), Just("content"), Just("other")], text)
        .prop_map(|(key, text)| format!("{{\"{key}\": {text}}}"));
    let key = prop_oneof![Just("conversations"), Just("conversation"), Just("id")];
    (key, prop::collection::vec(turn, 0..4))
        .prop_map(|(key, turns)| format!("{{\"{key}\": [{}]}}", turns.join(",")))
}

proptest! {
    #[test]
    fn any_bytes_may_be_a_dataset(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        fuzzing::share_gpt_json(&bytes);
        fuzzing::custom_json_lines(&bytes);
    }

    #[test]
    fn any_conversations_may_be_a_dataset(rows in prop::collection::vec(conversation_json(), 0..8)) {
        fuzzing::share_gpt_json(format!("[{}]", rows.join(",")).as_bytes());
        fuzzing::custom_json_lines(rows.join("\n").as_bytes());
    }

    #[test]
    fn lengths_stay_between_their_bounds(
        seed: u32, len in 1..200_u32, ratio in 0.0..=1.0_f64, n in 1..20_usize,
    ) {
        let options = DatasetOptions { tokenize_prompt: true, ..random_ids(n, len, ratio) };
        let loaded =
            load(&options, &Tokenizer::byte_level(), &hub(), &mut Draws::new(seed)).unwrap();
        prop_assert_eq!(loaded.samples.len(), n);
        let shortest = ((f64::from(len) * ratio) as u32).max(1);
        for sample in loaded.samples {
            prop_assert!((shortest..=len).contains(&sample.prompt_len));
            let Prompt::Ids(ids) = sample.prompt else { panic!("ids were asked for") };
            prop_assert_eq!(ids.len(), sample.prompt_len as usize);
            prop_assert!(ids.windows(2).all(|pair| pair[1] == (pair[0] + 1) % 256));
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_samples(seed: u32, n in 1..10_usize) {
        let (_folder, path) = file(&conversations(&[("ab", "cd"), ("ef", "gh")]).to_string());
        let options = DatasetOptions { path, num_prompts: n, ..DatasetOptions::default() };
        let once = load(&options, &Tokenizer::byte_level(), &hub(), &mut Draws::new(seed)).unwrap();
        let again = load(&options, &Tokenizer::byte_level(), &hub(), &mut Draws::new(seed)).unwrap();
        prop_assert_eq!(once, again);
    }
}

#[test]
fn what_is_no_text_of_rows_is_named() {
    for (bytes_of, part) in [
        (b"".as_slice(), "is empty"),
        (b"\x1f\x8b\x08\x00", "is packed (gzip): unpack it"),
        (b"[]\n\n\xff", "is not UTF-8 (line 3, byte 4 of the file)"),
    ] {
        for name in [DatasetName::ShareGpt, DatasetName::Custom, DatasetName::OpenAi] {
            let (_folder, path) = file("");
            std::fs::write(path.as_ref().unwrap(), bytes_of).unwrap();
            let options = DatasetOptions { name, path, ..DatasetOptions::default() };
            let error = bytes(&options).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
