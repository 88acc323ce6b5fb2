use super::*;
use crate::vllm::{VllmDataset, load as load_any};
use std::collections::HashSet;

fn load_of(
    own: &StructuredOptions,
    count: usize,
    seed: u32,
) -> Result<StructuredLoaded, DatasetError> {
    load_copy(own, count, seed, None)
}

fn load_copy(
    own: &StructuredOptions,
    count: usize,
    seed: u32,
    path: Option<PathBuf>,
) -> Result<StructuredLoaded, DatasetError> {
    let options = VllmDatasetOptions {
        num_prompts: Some(count),
        seed,
        path,
        ..VllmDatasetOptions::new(VllmDataset::Structured(own.clone()))
    };
    let tokenizer = Tokenizer::byte_level();
    load_structured(own, &options, Some(&tokenizer), None, &mut Draws::new(seed))
}

fn all(kind: StructuredKind) -> StructuredOptions {
    StructuredOptions { kind, output_len: 9, ratio: 1.0, ..StructuredOptions::default() }
}

fn constraint_of(row: &Sample) -> Option<&Value> {
    row.extra_body.get(FIELD)
}

fn text(row: &Sample) -> &str {
    match &row.prompt {
        Prompt::Text(text) => text,
        other => panic!("{other:?} is no text"),
    }
}

#[test]
fn constraints_are_those_of_the_script() {
    for (kind, want) in [
        (StructuredKind::Regex, json!({"regex": "\\w+@\\w+\\.com\\n"})),
        (StructuredKind::Choice, json!({"choice": ["Positive", "Negative"]})),
        (StructuredKind::Json, json!({"json": constraint::profile()})),
    ] {
        let loaded = load_of(&all(kind), 3, 0).unwrap();
        assert_eq!(loaded.rows.samples.len(), 3);
        for row in loaded.rows.samples.iter().chain([&loaded.test]) {
            assert_eq!((constraint_of(row), row.output_len), (Some(&want), 9));
            assert_eq!(row.prompt_len as usize, text(row).len(), "counted");
        }
        assert_eq!(loaded.expected, [const { None }; 3]);
        assert_eq!(kind.name().len(), VllmDataset::Structured(all(kind)).name().len());
        assert_eq!(StructuredKind::from_name(kind.name()), Some(kind));
    }
    let loaded = load_of(&all(StructuredKind::Json), 1, 0).unwrap();
    assert!(text(&loaded.test).ends_with(&python_json::write(&constraint::profile())));
}

#[test]
fn the_selection_is_pythons() {
    // random.seed(s); sorted(random.sample(range(20), int(20 * 0.3)))
    for (seed, want) in [(0, [1, 6, 8, 12, 13, 15]), (42, [0, 2, 3, 7, 8, 16])] {
        let own = StructuredOptions { ratio: 0.3, ..all(StructuredKind::Choice) };
        let loaded = load_of(&own, 20, seed).unwrap();
        let has = |(index, row): (usize, &Sample)| constraint_of(row).map(|_| index);
        let chosen: Vec<usize> = loaded.rows.samples.iter().enumerate().filter_map(has).collect();
        assert_eq!(chosen, want);
        assert_eq!(constraint_of(&loaded.test).is_some(), want[0] == 0, "as the first row");
    }
    let none = StructuredOptions { ratio: 0.0, ..all(StructuredKind::Regex) };
    assert!(load_of(&none, 5, 0).unwrap().rows.samples.iter().all(|row| row.extra_body.is_empty()));
}

#[test]
fn unique_schemas_are_all_different() {
    let of = |salt| {
        let own = StructuredOptions { salt, ..all(StructuredKind::JsonUnique) };
        load_of(&own, 20, 0).unwrap()
    };
    let (one, other) = (of(1), of(2));
    let names: HashSet<String> = [&one, &other]
        .into_iter()
        .flat_map(|loaded| loaded.rows.samples.iter().chain([&loaded.test]))
        .map(|row| {
            let schema = &row.extra_body[FIELD]["json"];
            assert!(
                text(row).ends_with(&python_json::write(schema)),
                "its own schema is asked for"
            );
            let properties = schema["properties"].as_object().unwrap();
            assert_eq!(properties.len(), 11);
            let (name, field) = properties.iter().next_back().unwrap();
            assert_eq!(
                (&schema["required"], &field["type"]),
                (&json!(["name", "email"]), &json!("string"))
            );
            name.clone()
        })
        .collect();
    assert_eq!(names.len(), 42);
    assert!(names.contains("__optional_field_00000000-0000-4001-8000-000000000014"), "{names:?}");
}

#[test]
fn schemas_come_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("schema.json");
    let own = |kind| StructuredOptions { schema: Some(path.clone()), ..all(kind) };
    std::fs::write(&path, r#"{"type": "object", "é": 1}"#).unwrap();
    let loaded = load_of(&own(StructuredKind::Json), 1, 0).unwrap();
    assert_eq!(loaded.test.extra_body[FIELD]["json"], json!({"type": "object", "é": 1}));
    assert!(text(&loaded.test).ends_with(r#"{"type": "object", "\u00e9": 1}"#));
    let unique = load_of(&own(StructuredKind::JsonUnique), 1, 0).unwrap();
    assert_eq!(unique.test.extra_body[FIELD]["json"]["properties"].as_object().unwrap().len(), 1);

    for (content, kind, said) in [
        ("[]", StructuredKind::JsonUnique, "--json-schema-path"),
        (r#"{"properties": 3}"#, StructuredKind::JsonUnique, "--json-schema-path"),
        ("{", StructuredKind::Json, "schema.json"),
    ] {
        std::fs::write(&path, content).unwrap();
        let error = load_of(&own(kind), 1, 0).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
}

#[test]
fn all_prompts_begin_with_the_prefix() {
    let plain = load_of(&all(StructuredKind::Choice), 2, 7).unwrap();
    let own = StructuredOptions { prefix_len: 40, ..all(StructuredKind::Choice) };
    let loaded = load_of(&own, 2, 7).unwrap();
    let (with, without) = (text(&loaded.rows.samples[1]), text(&plain.rows.samples[1]));
    assert!(with.ends_with(without) && with.len() > without.len() + 39, "{with:?}");
    assert_eq!(loaded.rows.samples[0].prompt, loaded.test.prompt);
    assert_ne!(loaded, load_of(&own, 2, 8).unwrap(), "another seed, another prefix");
}

/// Three rows, of which the second has a schema that xgrammar does not know.
fn copy(folder: &Path) -> PathBuf {
    let row = |word: &str, schema: &str| {
        let prompt =
            json!([{"role": "system", "content": "be brief"}, {"role": "user", "content": word}]);
        json!({"prompt": prompt, "completion": format!("{{\"{word}\": 1}}"), "schema": schema})
            .to_string()
    };
    let rows = [
        row("one", r#"{"type": "object"}"#),
        row("two", r#"{"type": "array", "uniqueItems": true}"#),
        row("three", r#"{"type":"integer"}"#),
    ];
    let path = folder.join("train.jsonl");
    std::fs::write(&path, rows.join("\n")).unwrap();
    path
}

#[test]
fn a_dataset_is_gone_through_again_and_again() {
    let folder = tempfile::tempdir().unwrap();
    let own = StructuredOptions { messages: true, ..all(StructuredKind::XgrammarBench) };
    let loaded = load_copy(&own, 5, 0, Some(copy(folder.path()))).unwrap();
    let schemas: Vec<&str> = loaded
        .rows
        .samples
        .iter()
        .map(|row| row.extra_body[FIELD]["json"].as_str().unwrap())
        .collect();
    let [first, second] = [r#"{"type": "object"}"#, r#"{"type":"integer"}"#];
    assert_eq!(schemas, [first, second, first, second, first], "as text, to the character");
    assert_eq!(loaded.test.extra_body[FIELD]["json"], second, "the row after the last");
    let expected: Vec<&str> = loaded.expected.iter().map(|text| text.as_deref().unwrap()).collect();
    assert_eq!(expected[..2], [r#"{"one": 1}"#, r#"{"three": 1}"#]);
    assert!(
        loaded.rows.warnings[0].contains("has 2 usable rows, and 1 whose"),
        "{:?}",
        loaded.rows.warnings
    );
    let Prompt::Messages(messages) = &loaded.rows.samples[1].prompt else { panic!("no messages") };
    assert_eq!(messages[1], json!({"role": "user", "content": "three"}));

    let own = StructuredOptions { prefix_len: 5, ..own };
    let prefixed = load_copy(&own, 1, 0, Some(copy(folder.path()))).unwrap();
    let Prompt::Messages(messages) = &prefixed.rows.samples[0].prompt else {
        panic!("no messages")
    };
    let content = messages[0]["content"].as_str().unwrap();
    assert!(content.ends_with("be brief") && content.len() > 8, "{content}");
    assert_eq!(messages[1], json!({"role": "user", "content": "one"}));
}

#[test]
fn bad_rows_are_said_with_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    for (row, said) in [
        (json!({"prompt": "text", "schema": "{}"}), "`prompt`"),
        (json!({"prompt": [], "schema": "{}"}), "`prompt`"),
        (json!({"prompt": [{"role": "user"}], "schema": "{}"}), "`prompt`"),
        (json!({"prompt": [], "schema": "{"}), "`schema` is no JSON"),
        (json!({"prompt": [], "schema": {}}), "`schema` is"),
        (json!({"prompt": [], "schema": r#"{"allOf": [{}, {}]}"#}), "xgrammar"),
    ] {
        std::fs::write(&path, row.to_string()).unwrap();
        let own = StructuredOptions { messages: true, ..all(StructuredKind::XgrammarBench) };
        let error = load_copy(&own, 1, 0, Some(path.clone())).unwrap_err().to_string();
        assert!(error.contains(said), "{row}: {error}");
    }
}

#[test]
fn what_makes_no_run_is_refused() {
    let error = |own: &StructuredOptions, count| load_of(own, count, 0).unwrap_err().to_string();
    assert!(error(&all(StructuredKind::Json), 0).starts_with("--num-prompts"));
    for ratio in [-0.1, 1.1, f64::NAN] {
        let own = StructuredOptions { ratio, ..all(StructuredKind::Json) };
        assert!(error(&own, 1).starts_with("--structured-output-ratio"));
    }
    let options = VllmDatasetOptions::new(VllmDataset::Structured(all(StructuredKind::Json)));
    let error = load_any(&options, None, &mut Draws::new(0)).unwrap_err().to_string();
    assert!(error.starts_with("--tokenizer"), "{error}");
}
