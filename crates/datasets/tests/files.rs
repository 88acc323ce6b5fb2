//! Files of traces, requests and conversations that are not as they should be.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use serde_json::{Value, json};
use servebench_core::random::Draws;
use servebench_core::{Prompt, Stamp};
use servebench_datasets::{
    AgenticOptions, DatasetError, DatasetName, DatasetOptions, Loaded, MooncakeOptions, fuzzing,
    load,
};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::error::Error as _;

fn run(options: DatasetOptions, text: &str) -> Result<Loaded, DatasetError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows");
    std::fs::write(&path, text).unwrap();
    let hub = Hub::new(HubConfig { offline: true, ..HubConfig::new("no/such/cache") });
    let options = DatasetOptions { path: Some(path), ..options };
    load(&options, &Tokenizer::byte_level(), &hub, &mut Draws::new(42))
}

fn of(name: DatasetName, num_prompts: usize) -> DatasetOptions {
    DatasetOptions { name, num_prompts, ..DatasetOptions::default() }
}

fn mooncake(num_prompts: usize, replay: MooncakeOptions) -> DatasetOptions {
    DatasetOptions { mooncake: Some(replay), ..of(DatasetName::Mooncake, num_prompts) }
}

const ROW: &str = r#"{"timestamp": 5, "hash_ids": [1], "output_length": 3}"#;

#[test]
fn a_bad_row_of_a_trace_is_named() {
    for (row, problem) in [
        ("no json", "expected ident"),
        ("[]", "invalid length"),
        ("{}", "missing field `timestamp`"),
        (r#"{"timestamp": 5}"#, "missing field `hash_ids`"),
        (r#"{"timestamp": "5", "hash_ids": []}"#, "invalid type: string"),
        (r#"{"timestamp": 5, "hash_ids": [[]]}"#, "[] in hash_ids is no number"),
        (r#"{"timestamp": 5, "hash_ids": [], "output_length": -1}"#, "invalid value"),
    ] {
        let text = format!("{ROW}\n\n{row}\n{ROW}");
        let error = run(of(DatasetName::Mooncake, 9), &text).unwrap_err().to_string();
        assert!(
            error.starts_with("bad row in the dataset ") && error.contains("line 3"),
            "{error}"
        );
        assert!(error.contains(problem), "{error}");
        // Rows that are not wanted are not looked at.
        assert_eq!(run(of(DatasetName::Mooncake, 1), &text).unwrap().samples.len(), 1);
    }
}

#[test]
fn a_short_trace_is_said_and_an_empty_one_refused() {
    let loaded = run(of(DatasetName::Mooncake, 3), &format!("{ROW}\n")).unwrap();
    assert!(loaded.warnings.concat().starts_with("only 1 of 3 rows: "), "{:?}", loaded.warnings);
    let error = run(of(DatasetName::Mooncake, 3), " \n").unwrap_err();
    assert!(error.to_string().starts_with("no usable rows"), "{error}");
}

#[test]
fn a_replay_that_does_not_fit_is_refused_before_it_is_made() {
    let rounds = MooncakeOptions { rounds: 100_000, ..MooncakeOptions::default() };
    let error = run(mooncake(1, rounds), ROW).unwrap_err().to_string();
    assert!(error.starts_with("--mooncake-num-rounds 100000 makes 2"), "{error}");
    let long = r#"{"timestamp": 5, "hash_ids": [], "output_length": 4294967295}"#;
    let rounds = MooncakeOptions { rounds: 2, ..MooncakeOptions::default() };
    let error = run(mooncake(1, rounds), long).unwrap_err().to_string();
    assert!(error.contains("more than is kept in memory"), "{error}");
    for slowdown in [-1.0, f64::NAN, f64::INFINITY] {
        let error =
            run(mooncake(1, MooncakeOptions { slowdown, ..MooncakeOptions::default() }), ROW);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("--mooncake-slowdown-factor"), "{error}");
    }
    let none = MooncakeOptions { rounds: 0, ..MooncakeOptions::default() };
    assert!(run(mooncake(1, none), ROW).is_err());
}

#[test]
fn times_count_from_the_first_row_and_are_stretched() {
    let row = |at: f64| json!({"timestamp": at, "hash_ids": ["x", 2], "output_length": 1});
    let text = [row(2000.5), row(-500.0), row(1000.0)].map(|row| row.to_string()).join("\n");
    let times = |slowdown| {
        let replay = MooncakeOptions { slowdown, ..MooncakeOptions::default() };
        let loaded = run(mooncake(3, replay), &text).unwrap();
        loaded.samples.into_iter().map(|sample| sample.timestamp.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(times(1.0), [Stamp(0), Stamp::from_millis(1500), Stamp(2_500_500_000)]);
    assert_eq!(times(2.0), [Stamp(0), Stamp::from_millis(3000), Stamp(5_001_000_000)]);
    assert_eq!(times(0.0), [Stamp(0); 3]);
}

#[test]
fn rows_that_are_no_requests_are_skipped_and_said() {
    let text = [
        r#"{"messages": [{"role": "user", "content": "a"}], "max_tokens": null, "stream": false}"#,
        "no json",
        "[1]",
        r#"{"messages": "hello"}"#,
        r#"{"messages": ["hello"]}"#,
        r#"{"messages": []}"#,
        r#"{"messages": [{"role": "user", "content": "b"}], "max_tokens": 7.0}"#,
        r#"{"messages": [{"role": "user", "content": "c"}], "max_tokens": 0}"#,
        r#"{"messages": [{"role": "user", "content": "c"}], "max_tokens": "7"}"#,
        r#"{"messages": [{"role": "user"}], "max_completion_tokens": 9, "tools": null}"#,
    ]
    .join("\n");
    let loaded = run(of(DatasetName::OpenAi, 4), &text).unwrap();
    let lens: Vec<u32> = loaded.samples.iter().map(|sample| sample.output_len).collect();
    assert_eq!(lens, [256, 7, 256]);
    assert_eq!(loaded.samples[0].extra_body, *json!({"stream": false}).as_object().unwrap());
    assert_eq!(loaded.samples[0].prompt_len as usize, "user: a".len());
    let [few, limits] = &loaded.warnings[..] else { panic!("{:?}", loaded.warnings) };
    assert!(few.starts_with("only 3 of 4 prompts"), "{few}");
    let skipped = "7 skipped (2 no JSON from line 2 on, 3 without messages from line 4 on, \
                   2 with a max_tokens that is no positive number from line 8 on)";
    assert!(few.ends_with(skipped), "{few}");
    assert!(limits.starts_with("1 rows limit their output by max_completion_tokens"), "{limits}");

    let error = run(of(DatasetName::OpenAi, 4), "{}\n").unwrap_err().to_string();
    assert!(error.contains("1 without messages from line 1 on"), "{error}");
}

#[test]
fn a_trace_of_conversations_is_read_whole_or_not() {
    let agentic = |offset, max_turns| DatasetOptions {
        agentic: Some(AgenticOptions { offset, max_turns }),
        ..of(DatasetName::AgenticTrace, 2)
    };
    for (text, place) in [
        ("[]", "line 1"),
        ("{\"conversations\":\n[[{\"messages\": 3}]]}", "line 2"),
        ("{\"conversations\":\n[\n[[\"no object\"]]]}", "line 3"),
    ] {
        let error = run(agentic(0, 0), text).unwrap_err();
        let source = error.source().unwrap().to_string();
        assert!(error.to_string().ends_with("is no trace of conversations"), "{error}");
        assert!(source.contains(place), "{source}");
    }
    let empty = r#"{"conversations": [[], [{"messages": []}]]}"#;
    let error = run(agentic(0, 0), empty).unwrap_err().to_string();
    assert!(error.contains("2 conversations without messages"), "{error}");
    let one = json!({"conversations": [[], [
        {"messages": [{"role": "user", "content": "a", "name": "n", "tool_calls": []}]},
        {"messages": []}, {"messages": [{"role": "user", "content": null}]},
    ]]});
    let loaded = run(agentic(-7, 5), &one.to_string()).unwrap();
    assert!(loaded.warnings.concat().starts_with("only 1 of 2 conversations"));
    let turn = |content: Value| vec![json!({"role": "user", "content": content})];
    let turns = vec![turn("a".into()), turn(Value::Null)];
    assert_eq!(loaded.samples[0].prompt, Prompt::Turns(turns));
}

#[test]
fn files_must_be_named() {
    let hub = Hub::new(HubConfig { offline: true, ..HubConfig::new("no/such/cache") });
    for (name, want) in [
        (DatasetName::OpenAi, "--dataset-name openai needs a file: give --dataset-path"),
        (DatasetName::AgenticTrace, "--dataset-name agentic-trace needs a file"),
        (DatasetName::Mooncake, "no trace for --dataset-name mooncake: give --dataset-path"),
    ] {
        let error = load(&of(name, 1), &Tokenizer::byte_level(), &hub, &mut Draws::new(1));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(want), "{error}");
    }
}

/// JSON made of the fields that the parsers look for, so that they get far.
fn field() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keys = prop::sample::select(vec![
            "messages",
            "conversations",
            "prompt_tokens",
            "timestamp",
            "hash_ids",
            "output_length",
            "role",
            "content",
            "max_tokens",
            "max_completion_tokens",
            "tools",
            "model",
        ]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|fields| {
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_may_be_a_file(bytes: Vec<u8>) {
        fuzzing::mooncake_json_lines(&bytes);
        fuzzing::openai_json_lines(&bytes);
        fuzzing::agentic_json(&bytes);
    }

    #[test]
    fn any_json_may_be_a_file(rows in prop::collection::vec(field(), 0..5)) {
        let lines = rows.iter().map(Value::to_string).collect::<Vec<_>>().join("\n");
        fuzzing::mooncake_json_lines(lines.as_bytes());
        fuzzing::openai_json_lines(lines.as_bytes());
        for row in rows {
            fuzzing::agentic_json(row.to_string().as_bytes());
            fuzzing::agentic_json(json!({"conversations": row}).to_string().as_bytes());
            let turn = json!({"conversations": [[{"messages": row}, {"messages": [row]}]]});
            fuzzing::agentic_json(turn.to_string().as_bytes());
            fuzzing::openai_json_lines(json!({"messages": row, "tools": row}).to_string().as_bytes());
        }
    }

    #[test]
    fn requests_follow_the_time_of_the_trace(
        times in prop::collection::vec(-1e6..1e6_f64, 1..20), rounds in 1..3_u32, ids in 0..3_u8,
    ) {
        let ids: Vec<u8> = (0..ids).collect();
        let row = |at| json!({"timestamp": at, "hash_ids": ids, "output_length": 2}).to_string();
        let lines = times.iter().map(row).collect::<Vec<_>>().join("\n");
        fuzzing::mooncake_json_lines(lines.as_bytes());
        let replay = MooncakeOptions { rounds, ..MooncakeOptions::default() };
        let loaded = run(mooncake(times.len(), replay), &lines).unwrap();
        prop_assert_eq!(loaded.samples.len(), times.len() * rounds as usize);
        prop_assert!(loaded.samples.is_sorted_by_key(|sample| sample.timestamp));
        let span = times.iter().copied().fold(f64::MIN, f64::max)
            - times.iter().copied().fold(f64::MAX, f64::min);
        let last = loaded.samples.last().unwrap().timestamp.unwrap().as_secs_f64();
        prop_assert!((last - span / 1000.0).abs() < 1e-6);
    }
}
