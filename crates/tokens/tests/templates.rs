//! Chat templates: what Python renders, and what must not hurt.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use serde_json::{Value, json};
use servebench_tokens::without_leading;
use servebench_tokens::{ChatTemplate, Hub, HubConfig, Tokenizer, TokensError, fuzzing};
use std::error::Error as _;

const PLAIN: &str = "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}\
                     {% if add_generation_prompt %}[assistant]{% endif %}";

fn render(source: &str) -> Result<String, TokensError> {
    let specials = vec![("bos_token", "<s>".to_owned())];
    ChatTemplate::new("t", source, specials)?.render(&[user("aa")], true)
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn reason(error: &TokensError) -> String {
    error.source().map(ToString::to_string).unwrap_or_default()
}

/// Loads a folder that holds a tokenizer of one token and the given files.
fn load(files: &[(&str, &str)]) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    let tokenizer = r#"{"version": "1.0", "added_tokens": [],
        "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}"#;
    std::fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let hub = Hub::new(HubConfig { offline: true, ..HubConfig::new(folder.path()) });
    let tokenizer = Tokenizer::load(folder.path().to_str().unwrap(), &hub).unwrap();
    drop(tokenizer.chat_template().map(drop)); // Reads the files before the folder is gone.
    tokenizer
}

fn config(fields: &Value) -> Tokenizer {
    load(&[("tokenizer_config.json", &fields.to_string())])
}

fn prompt(tokenizer: &Tokenizer, text: &str) -> String {
    let rendered = tokenizer.chat_template().unwrap().render(&[user(text)], true).unwrap();
    without_leading(&rendered, tokenizer.bos_token()).to_owned()
}

#[test]
fn a_leading_bos_goes_and_no_other() {
    let with_bos = format!("{{{{ bos_token }}}}{PLAIN}");
    let null = config(&json!({"bos_token": null, "chat_template": PLAIN}));
    assert_eq!(prompt(&null, "aa"), "[user]aa[assistant]");
    let text = config(&json!({"bos_token": "<s>", "chat_template": with_bos}));
    assert_eq!(prompt(&text, "aa"), "[user]aa[assistant]");
    let object =
        json!({"bos_token": {"content": "<s>", "special": true}, "chat_template": with_bos});
    assert_eq!(prompt(&config(&object), "aa"), "[user]aa[assistant]");
    let empty = config(&json!({"bos_token": "", "chat_template": PLAIN}));
    assert_eq!(prompt(&empty, "aa"), "[user]aa[assistant]");
    assert_eq!(prompt(&text, "a<s>a"), "[user]a<s>a[assistant]");
}

#[test]
fn a_missing_template_names_tokenizer_and_flag() {
    let error = config(&json!({})).chat_template().map(drop).unwrap_err().to_string();
    assert!(error.contains("--apply-chat-template"), "{error}");
}

#[test]
fn the_file_wins_over_the_entry_and_default_over_the_others() {
    let list = json!({"chat_template": [
        {"name": "tool_use", "template": "no"}, {"name": "default", "template": "list"}
    ]});
    assert_eq!(prompt(&config(&list), ""), "list");
    let both =
        load(&[("tokenizer_config.json", &list.to_string()), ("chat_template.jinja", "file")]);
    assert_eq!(prompt(&both, ""), "file");
}

#[test]
fn what_python_templates_use_works() {
    let cases = [
        ("{{ '  x '.strip() }}|{{ 'a,b'.split(',')[1] }}|{{ 'Ab'.upper() }}", "x|b|AB"),
        ("{% for m in messages %}{{ loop.index0 }}{% endfor %}", "0"),
        ("{{ messages[0]['content'][1:] }}{{ messages[-1].role }}", "auser"),
        ("{% for m in messages %}{% break %}{% endfor %}done", "done"),
        ("{% set ns = namespace(n=0) %}{% set ns.n = ns.n + 2 %}{{ ns.n }}", "2"),
        ("{{ messages[0].get('name', 'none') }}", "none"),
        ("{% if tools is not none %}tools{% else %}no{% endif %}", "no"),
        ("{{ true }} {{ none }} {{ 1.0 }}", "True None 1.0"),
        ("{{ bos_token }}{{ eos_token }}", "<s>"),
        ("a\n  {% if true %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"),
        ("{%- generation -%} x {%- endgeneration %}", "x"),
        ("{{ raise_exception is defined }}", "True"),
    ];
    for (source, want) in cases {
        assert_eq!(render(source).unwrap(), want, "{source}");
    }
}

#[test]
fn json_is_written_as_python_writes_it() {
    let cases = [
        (
            r#"{{ {"a": [1, 2.5, true, none], "b": "é<&"} | tojson }}"#,
            r#"{"a": [1, 2.5, true, null], "b": "é<&"}"#,
        ),
        (r#"{{ {"b": 1, "a": []} | tojson(indent=2) }}"#, "{\n  \"b\": 1,\n  \"a\": []\n}"),
        (r#"{{ {"b": 1, "a": 2} | tojson(sort_keys=true) }}"#, r#"{"a": 2, "b": 1}"#),
        (r#"{{ [1, {"a": 2}] | tojson(separators=(",", ":")) }}"#, r#"[1,{"a":2}]"#),
        (r#"{{ "é𝄞\n" | tojson(ensure_ascii=true) }}"#, "\"\\u00e9\\ud834\\udd1e\\n\""),
    ];
    for (source, want) in cases {
        assert_eq!(render(source).unwrap(), want, "{source}");
    }
}

#[test]
fn the_date_can_be_printed() {
    let year = render("{{ strftime_now('%Y') }}").unwrap();
    assert_eq!(year.len(), 4, "{year}");
    render("{{ strftime_now('%!') }}").unwrap_err();
}

#[test]
fn refusals_and_mistakes_are_readable() {
    let refused = render("{{ raise_exception('system not supported') }}").unwrap_err();
    assert!(reason(&refused).contains("system not supported"), "{}", reason(&refused));
    let broken = render("{% for %}").unwrap_err();
    assert!(matches!(broken, TokensError::Template { .. }));
    assert!(reason(&broken).contains("syntax error"), "{}", reason(&broken));
}

#[test]
fn endless_templates_are_stopped() {
    let loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    assert!(reason(&render(loops).unwrap_err()).contains("fuel"));
    let grows = "{% for a in range(99999) %}{{ 'x' * 1000000 }}{% endfor %}";
    assert!(render(grows).is_err());
    let calls = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
    assert!(render(calls).is_err());
    assert!(render(&"x".repeat(2 << 20)).is_err());
}

/// Pieces of templates, so that random text is often a template.
fn source() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{{"),
        Just("}}"),
        Just("{%"),
        Just("%}"),
        Just(" for m in messages "),
        Just(" endfor "),
        Just(" if "),
        Just(" m "),
        Just(" messages "),
        Just("[0]"),
        Just(".content"),
        Just("|tojson"),
        Just("|length"),
        Just(" endif "),
        Just("'a'"),
        Just(" generation "),
        Just("-"),
        Just("1"),
        Just(" set x = "),
        Just("\n"),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_may_be_a_template(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        fuzzing::chat_template(&bytes);
    }

    #[test]
    fn any_pieces_may_be_a_template(source in source()) {
        fuzzing::chat_template(source.as_bytes());
    }

    #[test]
    fn any_bytes_may_be_a_configuration(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        source in source(),
    ) {
        fuzzing::tokenizer_config(&bytes);
        let config = json!({"chat_template": source, "bos_token": [1], "added_tokens_decoder": {
            "x": 1, "3": {"content": source}, "2": {"content": 5}
        }});
        fuzzing::tokenizer_config(config.to_string().as_bytes());
    }

    #[test]
    fn text_without_the_token_is_unchanged(text in "[^<]*") {
        prop_assert_eq!(without_leading(&text, Some("<s>")), &text);
        prop_assert_eq!(without_leading(&text, Some("")), &text);
        prop_assert_eq!(without_leading(&text, None), &text);
    }
}
