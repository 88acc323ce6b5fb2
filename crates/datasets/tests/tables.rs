//! Tables: what the Python tool makes of them, what is in them, and files that are not as they should be.
//!
//! `tests/golden` of the workspace holds what the Python tool made; its `PROVENANCE.md` tells how.
//! A crate that was packaged alone does not have it.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use serde_json::Value;
use servebench_core::Prompt;
use servebench_core::random::Draws;
use servebench_datasets::table::{Table, fuzzing};
use servebench_datasets::{
    DatasetError, DatasetName, DatasetOptions, Loaded, SpeedBenchCategory, SpeedBenchOptions, load,
};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::error::Error as _;
use std::path::{Path, PathBuf};

fn workspace_tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests")
}

fn fixture(name: &str) -> PathBuf {
    workspace_tests().join("fixtures").join(name)
}

fn nowhere() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("no/such/cache") })
}

fn run(options: DatasetOptions, text: &str) -> Result<Loaded, DatasetError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    std::fs::write(&path, text).unwrap();
    let options = DatasetOptions { path: Some(path), ..options };
    load(&options, &Tokenizer::byte_level(), &nowhere(), &mut Draws::new(42))
}

fn of(name: DatasetName, num_prompts: usize) -> DatasetOptions {
    DatasetOptions { name, num_prompts, ..DatasetOptions::default() }
}

mod golden {
    use super::*;

    fn value<'c>(case: &'c Value, flag: &str) -> Option<&'c str> {
        let words = case["argv"].as_array().unwrap();
        let at = words.iter().rposition(|word| word == flag)?;
        words.get(at + 1).and_then(Value::as_str)
    }

    fn number(case: &Value, flag: &str) -> Option<u32> {
        value(case, flag).map(|text| text.parse().unwrap())
    }

    fn options(case: &Value) -> DatasetOptions {
        let category = |name: &str| match name {
            "low_entropy" => SpeedBenchCategory::LowEntropy,
            "mixed" => SpeedBenchCategory::Mixed,
            _ => SpeedBenchCategory::HighEntropy,
        };
        let file = value(case, "--dataset-path").unwrap().strip_prefix("{FIXTURES}/").unwrap();
        let defaults = SpeedBenchOptions::default();
        let speed_bench = SpeedBenchOptions {
            category: value(case, "--speed-bench-category").map(category),
            output_len: number(case, "--speed-bench-output-len").unwrap_or(defaults.output_len),
        };
        DatasetOptions {
            name: DatasetName::from_name(value(case, "--dataset-name").unwrap()).unwrap(),
            path: Some(fixture(file)),
            num_prompts: number(case, "--num-prompts").unwrap() as usize,
            sharegpt_output_len: number(case, "--sharegpt-output-len"),
            sharegpt_context_len: number(case, "--sharegpt-context-len"),
            speed_bench: Some(speed_bench),
            ..DatasetOptions::default()
        }
    }

    /// What the generators give next is what they give next in Python.
    fn check_probe(name: &str, probe: &Value, draws: &mut Draws) {
        for want in probe["exponential"].as_array().unwrap() {
            let (got, want) = (draws.numpy.exponential(1.0 / 10.0), want.as_f64().unwrap());
            assert!((got - want).abs() <= want * 1e-15, "{name}: {got} is not {want}");
        }
        for want in probe["random"].as_array().unwrap() {
            let (got, want) = (draws.python.random(), want.as_f64().unwrap());
            assert_eq!(got.to_bits(), want.to_bits(), "{name}: {got} is not {want}");
        }
    }

    #[test]
    fn rows_are_the_python_tools() {
        let path = workspace_tests().join("golden/tables.json");
        let Ok(text) = std::fs::read_to_string(&path) else {
            // The workspace always has the file; its absence there is a mistake.
            assert!(!workspace_tests().join("fixtures").exists(), "{} is missing", path.display());
            return;
        };
        let golden: Value = serde_json::from_str(&text).unwrap();
        let cases = golden["cases"].as_array().unwrap();
        assert_eq!(cases.len(), 80);
        for case in cases {
            let name = case["name"].as_str().unwrap();
            let options = options(case);
            if !cfg!(feature = "parquet") && name.contains("/parquet/") {
                continue;
            }
            let tokenizer = fixture("tokenizers").join(case["tokenizer"].as_str().unwrap());
            let tokenizer = Tokenizer::load(tokenizer.to_str().unwrap(), &nowhere()).unwrap();
            let mut draws = Draws::new(number(case, "--seed").unwrap());
            let loaded = load(&options, &tokenizer, &nowhere(), &mut draws).unwrap();
            let rows = case["rows"].as_array().unwrap();
            assert_eq!(loaded.samples.len(), rows.len(), "{name}");
            for (at, (sample, row)) in loaded.samples.iter().zip(rows).enumerate() {
                let Prompt::Text(prompt) = &sample.prompt else { panic!("{name}: no text") };
                assert_eq!(row["prompt"], prompt.as_str(), "{name} row {at}");
                assert_eq!(row["prompt_len"], sample.prompt_len, "{name} row {at}");
                assert_eq!(row["output_len"], sample.output_len, "{name} row {at}");
            }
            check_probe(name, &case["probe"], &mut draws);
        }
    }
}

#[cfg(feature = "parquet")]
mod parquet {
    use super::*;
    use servebench_datasets::table::{Cell, HubDataset, Row};

    fn small() -> Table {
        Table::open(&fixture("table_small.parquet"), None, "train").unwrap()
    }

    #[test]
    fn every_kind_of_value_is_read() {
        let text = |text: &str| Cell::Text(text.to_owned());
        let of = |fields: &[(&str, Cell)]| {
            Cell::Struct(
                fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            )
        };
        let want = [
            ("id", Cell::Int(1)),
            ("small", Cell::Int(255)),
            ("score", Cell::Float(0.5)),
            ("half", Cell::Float(0.25)),
            ("yes", Cell::Bool(true)),
            ("text", text("né\n木")),
            ("large", text("large")),
            ("kind", text("a")),
            (
                "image",
                of(&[
                    ("bytes", Cell::Bytes(b"\x89PNG\x00\xff".to_vec())),
                    ("path", text("one.png")),
                ]),
            ),
            ("tags", Cell::List(vec![text("x"), Cell::Null, text("")])),
            (
                "turns",
                Cell::List(vec![
                    of(&[("role", text("user")), ("content", text("hi"))]),
                    of(&[("role", text("assistant")), ("content", Cell::Null)]),
                ]),
            ),
            ("map", Cell::List(vec![of(&[("key", text("k")), ("value", Cell::Int(7))])])),
            ("when", Cell::Int(1_796_040_000_000_005)),
            ("price", text("12.34")),
            ("nothing", Cell::Null),
        ];
        let columns = want.each_ref().map(|(name, _)| *name);
        let rows: Vec<Row> = small().rows(&columns).collect::<Result<_, _>>().unwrap();
        assert_eq!(rows.len(), 5);
        for (name, want) in &want {
            assert_eq!(rows[0].get(name), Some(want), "{name}");
            assert_eq!(rows[1].get(name), Some(&Cell::Null), "{name}");
        }
        let (low, high) = (rows[2].get("id"), rows[3].get("id"));
        assert_eq!((low, high), (Some(&Cell::Int(i64::MIN)), Some(&Cell::Int(i64::MAX))));
        assert_eq!(rows[2].get("tags"), Some(&Cell::List(Vec::new())));
        let image = rows[2].get("image").unwrap();
        assert_eq!((image.field("bytes"), image.field("other")), (Some(&Cell::Null), None));
        assert_eq!(rows[3].get("image"), Some(&Cell::Null));
        let turns = rows[3].get("turns").and_then(Cell::list).unwrap();
        assert_eq!(turns[0], Cell::Null);
        assert_eq!(turns[1].field("content"), Some(&text("alone")));
        let bytes =
            rows[4].get("image").and_then(|image| image.field("bytes")).and_then(Cell::bytes);
        assert_eq!(bytes.unwrap().len(), 2048);
        assert_eq!(rows[4].get("tags").and_then(Cell::list).unwrap().len(), 40);
    }

    #[test]
    fn rows_are_picked_in_any_order_and_over_groups() {
        let rows = small().pick(&["text", "id"], &[4, 0, 4, 3]).unwrap();
        let ids: Vec<_> = rows.iter().map(|row| row.get("id").cloned().unwrap()).collect();
        assert_eq!(ids, [5, 1, 5, i64::MAX].map(Cell::Int));
        assert_eq!(rows[0].text("text").unwrap().len(), 3000);
        assert_eq!(rows[0].get("score"), None);
        let error = rows[2].text("id").unwrap_err().to_string();
        assert!(error.ends_with("row 5: `id` is a whole number, not text"), "{error}");
        let error = small().pick(&["txet"], &[0]).unwrap_err().to_string();
        assert!(error.contains("has no column `txet`, only id, small, score"), "{error}");
    }

    #[test]
    fn files_that_are_cut_or_no_parquet_are_errors() {
        let whole = std::fs::read(fixture("table_small.parquet")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.parquet");
        for bytes in [&b""[..], b"PAR1", b"{\"a\": 1}\n", &whole[..whole.len() - 1], &whole[..99]] {
            std::fs::write(&path, bytes).unwrap();
            let error = Table::open(&path, None, "train").unwrap_err();
            assert!(error.to_string().contains("rows.parquet is no Parquet file"), "{error}");
            assert!(error.source().is_some());
        }
    }

    #[test]
    fn a_folder_of_pieces_is_one_table() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        std::fs::create_dir(&data).unwrap();
        for name in ["train-00001-of-00002", "train-00000-of-00002", "test-00000-of-00001"] {
            let file = data.join(format!("{name}.parquet"));
            std::fs::copy(fixture("table_small.parquet"), file).unwrap();
        }
        let table = Table::open(folder.path(), None, "train").unwrap();
        assert_eq!((table.len(), table.rows(&["id"]).count()), (10, 10));
        let rows = table.pick(&["id"], &[9, 5, 4]).unwrap();
        let ids: Vec<_> = rows.iter().map(|row| row.get("id").cloned().unwrap()).collect();
        assert_eq!(ids, [5, 1, 5].map(Cell::Int));
        let error = rows[1].bad("no").to_string();
        assert!(error.contains("train-00001-of-00002.parquet, row 1: no"), "{error}");
        let error = Table::open(folder.path(), None, "validation").unwrap_err().to_string();
        assert!(error.contains("no split `validation`; there is test, train"), "{error}");
    }

    #[test]
    fn the_hubs_cache_is_enough_offline() {
        let cache = tempfile::tempdir().unwrap();
        let hub = || Hub::new(HubConfig { offline: true, ..HubConfig::new(cache.path()) });
        let of = |config, split| HubDataset { repo: "org/data", config, split };
        let error = Table::fetch(&hub(), of(None, "train")).unwrap_err();
        assert!(error.to_string().contains("org/data: give a file or folder"), "{error}");
        assert!(error.source().unwrap().to_string().contains("HF_HUB_OFFLINE"));
        // As the hub converts a repository.
        let root = cache.path().join("datasets--org--data");
        let put = |commit: &str, name: &str| {
            let path = root.join("snapshots").join(commit).join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::copy(fixture("table_small.parquet"), path).unwrap();
        };
        put("c0", "Math/test/0000.parquet");
        std::fs::create_dir_all(root.join("refs/refs/convert")).unwrap();
        std::fs::write(root.join("refs/refs/convert/parquet"), "c0").unwrap();
        std::fs::write(root.join("refs/main"), "m0").unwrap();
        let table = Table::fetch(&hub(), of(Some("Math"), "test")).unwrap();
        assert_eq!((table.len(), table.name()), (5, "org/data of the hub"));
        let error = Table::fetch(&hub(), of(Some("Art"), "test")).unwrap_err().to_string();
        assert!(error.contains("org/data of the hub: no part `Art`; there is Math"), "{error}");
        // What the repository holds itself comes first.
        put("m0", "Math/test-00000-of-00002.parquet");
        put("m0", "Math/test-00001-of-00002.parquet");
        assert_eq!(Table::fetch(&hub(), of(Some("Math"), "test")).unwrap().len(), 10);
        // Python notes no name for a commit it was told.
        std::fs::remove_dir_all(root.join("refs")).unwrap();
        std::fs::remove_dir_all(root.join("snapshots/c0")).unwrap();
        assert_eq!(Table::fetch(&hub(), of(Some("Math"), "test")).unwrap().len(), 10);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(192))]

        #[test]
        fn broken_files_are_read_or_refused(
            at in any::<prop::sample::Index>(), with in any::<u8>(), tail in any::<bool>(), cut in any::<bool>()
        ) {
            let mut bytes = std::fs::read(fixture("table_small.parquet")).unwrap();
            // The footer and the page headers are small beside the data.
            let from = if tail { bytes.len() - 4000 } else { 0 };
            let at = from + at.index(bytes.len() - from);
            bytes[at] = with;
            if cut {
                bytes.drain(at..bytes.len().min(at + 3));
            }
            fuzzing::table_parquet(&bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused_as_parquet(middle in prop::collection::vec(any::<u8>(), 0..200)) {
            let length = (middle.len() as u32).to_le_bytes();
            let bytes = [b"PAR1", middle.as_slice(), &length, b"PAR1"].concat();
            fuzzing::table_parquet(&bytes);
        }
    }
}

const QUESTION: &str = r#"{"context": "c", "question": "q", "choice_A": "a", "choice_B": "b", "choice_C": "c", "choice_D": "d"}"#;

#[test]
fn a_bad_question_is_named_and_one_that_is_not_reached_is_not() {
    for (row, problem) in [
        ("no json", "expected ident"),
        ("[]", "expected an object"),
        ("{}", "there is no `context`"),
        (&QUESTION.replace(r#""a""#, "[]"), "`choice_A` is a list, not text"),
        (&format!("{QUESTION} x"), "trailing characters"),
    ] {
        let text = format!("{QUESTION}\n\n{row}\r\n{QUESTION}");
        let error = run(of(DatasetName::LongBench, 9), &text).unwrap_err().to_string();
        assert!(error.contains("rows.jsonl, line 3: ") && error.contains(problem), "{error}");
    }
    let array = format!("[\n{QUESTION},\n{QUESTION}]");
    assert_eq!(run(of(DatasetName::LongBench, 2), &array).unwrap().samples.len(), 2);
    let error = run(of(DatasetName::LongBench, 2), &format!("[{QUESTION},\n]")).unwrap_err();
    assert!(error.to_string().ends_with("line 2: a row is missing beside a comma"), "{error}");
}

#[test]
fn questions_are_dropped_by_their_length() {
    let long = QUESTION.replacen(r#""c","#, &format!(r#""{}","#, "x".repeat(500)), 1);
    let text = format!("{QUESTION}\n{long}\n{QUESTION}\n");
    let short = DatasetOptions { sharegpt_context_len: Some(100), ..of(DatasetName::LongBench, 3) };
    let loaded = run(short.clone(), &text).unwrap();
    assert_eq!(loaded.samples.len(), 2);
    assert!(loaded.samples.iter().all(|sample| sample.prompt_len == 42 && sample.output_len == 10));
    assert!(loaded.warnings[0].contains("1 longer than --sharegpt-context-len"), "{loaded:?}");
    // 0 is no limit, as for the other sets.
    let any = DatasetOptions { sharegpt_context_len: Some(0), ..short.clone() };
    assert_eq!(run(any, &text).unwrap().samples.len(), 3);
    let none = DatasetOptions { sharegpt_context_len: Some(9), ..short };
    let error = run(none, &text).unwrap_err().to_string();
    assert!(error.contains("3 longer than --sharegpt-context-len"), "{error}");
    let longest = DatasetOptions { shortest_prompt: Some(43), ..of(DatasetName::LongBench, 1) };
    assert_eq!(run(longest, &text).unwrap().samples[0].prompt_len, 541);
}

#[test]
fn a_question_of_the_hub_needs_the_hub() {
    let options = of(DatasetName::LongBench, 1);
    let error = load(&options, &Tokenizer::byte_level(), &nowhere(), &mut Draws::new(1));
    let error = error.unwrap_err();
    assert!(error.to_string().contains("THUDM/LongBench-v2"), "{error}");
    assert!(error.source().unwrap().to_string().contains("no/such/cache"));
}

#[test]
fn odd_rows_of_speed_bench_are_named_or_counted() {
    let good = r#"{"category": "mixed", "turns": ["one", 2]}"#;
    for (row, problem) in [
        ("x", "expected value"),
        (r#"{"turns": "text"}"#, "`turns` is text, not a list of texts"),
        (r#"{"turns": [{}]}"#, "the first of `turns` is a struct, not text"),
    ] {
        let error = run(of(DatasetName::SpeedBench, 1), &format!("{good}\n{row}\n")).unwrap_err();
        assert!(
            error.to_string().ends_with(&format!("line 2: {problem}"))
                || error.to_string().contains(problem),
            "{error}"
        );
    }
    let text = format!("{good}\n{{}}\n{{\"turns\": []}}\n\n{good}\n");
    let loaded = run(of(DatasetName::SpeedBench, 2), &text).unwrap();
    assert_eq!(loaded.samples.len(), 2);
    assert!(
        loaded.warnings[0].contains("2 skipped (2 without turns from row 2 on)"),
        "{:?}",
        loaded.warnings
    );
    assert!(loaded.warnings[1].contains("sent as they are in the file"), "{:?}", loaded.warnings);
    let loaded = run(of(DatasetName::SpeedBench, 5), &text).unwrap();
    assert_eq!(loaded.samples.len(), 5);
    assert!(
        loaded.warnings[1].starts_with("5 prompts of 2 different ones"),
        "{:?}",
        loaded.warnings
    );
    let high = SpeedBenchOptions {
        category: Some(SpeedBenchCategory::HighEntropy),
        ..SpeedBenchOptions::default()
    };
    let options = DatasetOptions { speed_bench: Some(high), ..of(DatasetName::SpeedBench, 1) };
    let error = run(options, &text).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "no usable rows: 4 skipped (4 of another category from row 1 on) in category high_entropy of "
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused_as_json(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::table_json(&bytes);
    }

    #[test]
    fn pieces_of_json_are_read_or_refused(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "[", "]", "{", "}", ",", "\"", "\\", "\n", "\r", " ", "\u{feff}", "1", "\"a\"", ":", "\"turns\"", "é", "null", "\"\\\"[\"",
        ]), 0..40)
    ) {
        fuzzing::table_json(pieces.concat().as_bytes());
    }

    #[test]
    fn the_rows_of_an_array_are_its_values(values in prop::collection::vec(".*", 0..8), pretty in any::<bool>()) {
        let values: Vec<Value> =
            values.into_iter().map(|text| serde_json::json!({"turns": [text], "n": [[1, {}]]})).collect();
        let text = if pretty { serde_json::to_string_pretty(&values) } else { serde_json::to_string(&values) };
        let text = text.unwrap();
        fuzzing::table_json(text.as_bytes());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.json");
        std::fs::write(&path, text).unwrap();
        let table = Table::open(&path, None, "train").unwrap();
        prop_assert_eq!(table.len(), values.len());
        for (row, value) in table.rows(&["turns"]).zip(&values) {
            let row = row.unwrap();
            let turns = row.get("turns").and_then(|turns| turns.list()).unwrap();
            prop_assert_eq!(turns[0].text(), value["turns"][0].as_str());
        }
    }
}
