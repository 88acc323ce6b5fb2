//! Laws on arbitrary bytes.

use proptest::prelude::*;
use servebench_sim::fuzzing;

/// Pieces of JSON that a request might hold, right or wrong.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("\"auto\"".to_owned()),
        Just("\"required\"".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
        Just("[1, 2, 3]".to_owned()),
        Just("[[1], [2, 3]]".to_owned()),
        Just("[\"a\", \"b\"]".to_owned()),
        Just("[{\"role\": \"user\", \"content\": \"hi\"}]".to_owned()),
        Just("[{\"content\": [{\"text\": \"x\"}]}]".to_owned()),
        Just("[{\"function\": {\"name\": \"f\"}}]".to_owned()),
        Just("{\"function\": {\"name\": \"f\"}}".to_owned()),
        Just("{\"include_usage\": true, \"continuous_usage_stats\": true}".to_owned()),
        Just("{\"max_new_tokens\": 5, \"n\": 2}".to_owned()),
        Just("[{\"max_new_tokens\": 0}, {\"max_new_tokens\": 3}]".to_owned()),
        Just("{\"enable_thinking\": true}".to_owned()),
        (-3i64..70).prop_map(|number| number.to_string()),
        "[ -~]{0,12}".prop_map(|text| serde_json::Value::from(text).to_string()),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
    ]
}

fn body() -> impl Strategy<Value = String> {
    let names = prop::sample::subsequence(
        vec![
            "model",
            "text",
            "input_ids",
            "prompt",
            "messages",
            "input",
            "stream",
            "sampling_params",
            "stream_options",
            "max_tokens",
            "n",
            "best_of",
            "tools",
            "tool_choice",
            "rid",
            "chat_template_kwargs",
            "num_steps",
            "profile_by_stage",
            "encoding_format",
            "return_cached_tokens_details",
        ],
        0..12,
    );
    names.prop_flat_map(|names| {
        let count = names.len();
        prop::collection::vec(value(), count).prop_map(move |values| {
            let fields: Vec<_> = names
                .iter()
                .zip(&values)
                .map(|(name, value)| format!("\"{name}\": {value}"))
                .collect();
            format!("{{{}}}", fields.join(", "))
        })
    })
}

/// Bodies that are accepted, so that the replies are exercised too.
fn good_body() -> impl Strategy<Value = (u8, String)> {
    let text =
        || any::<String>().prop_filter("not empty", |text| !text.is_empty() && text.len() < 40);
    (0u8..3, text(), 1u32..20, 1u32..4, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(endpoint, text, tokens, n, stream, usage, tool)| {
            let options = serde_json::json!({"include_usage": usage,
                "continuous_usage_stats": tool});
            let body = match endpoint {
                0 => serde_json::json!({"text": text, "stream": stream, "rid": text,
                    "sampling_params": {"max_new_tokens": tokens, "n": n}}),
                1 => {
                    serde_json::json!({"model": text, "prompt": text, "max_tokens": tokens, "n": n,
                    "stream": stream, "stream_options": options})
                }
                _ => serde_json::json!({"model": text, "messages": [{"content": text}], "n": n,
                    "max_tokens": tokens, "stream": stream, "stream_options": options,
                    "tools": [{"function": {"name": text}}],
                    "tool_choice": if tool { "auto" } else { "none" }}),
            };
            (endpoint, body.to_string())
        },
    )
}

proptest! {
    #[test]
    fn any_bytes_get_a_valid_answer(choice: u8, body: Vec<u8>) {
        fuzzing::request_bodies(&[&[choice], &body[..]].concat());
    }

    #[test]
    fn any_fields_get_a_valid_answer(choice: u8, body in body()) {
        fuzzing::request_bodies(&[&[choice], body.as_bytes()].concat());
    }

    #[test]
    fn good_bodies_get_a_valid_answer((endpoint, body) in good_body(), engine: bool) {
        let choice = endpoint | if engine { 0x80 } else { 0 };
        fuzzing::request_bodies(&[&[choice], body.as_bytes()].concat());
    }

    #[test]
    fn any_bytes_on_a_connection_are_survived(bytes: Vec<u8>) {
        fuzzing::connections(&bytes);
        fuzzing::connections(&[b"POST /generate HTTP/1.1\r\ncontent-length: 9\r\n\r\n", &bytes[..]].concat());
    }

    #[test]
    fn settings_are_read_as_they_are_written(
        action in prop::sample::select(vec![
            r#"{"delay": {"ms": 1.5}}"#, r#"{"status": {"code": 503}}"#,
            r#"{"cut": {"after_bytes": 3}}"#, r#"{"reset": {}}"#,
            r#"{"malformed": {"at_token": 1}}"#, r#"{"stall": {"at_token": 1}}"#,
            r#"{"error": {"at_token": 1}}"#, r#"{"no_done": {}}"#,
            r#"{"hold_open": {}}"#, r#"{"duplicate": {"at_token": 1}}"#,
            r#"{"ping": {"every": 1}}"#, r#"{"close": {}}"#,
        ]),
        noise in any::<String>(),
        cut in 0usize..60,
    ) {
        let rules = format!(r#"[{{"when": {{"every": 2, "path": "/x"}}, "action": {action}}}]"#);
        servebench_sim::parse_faults(&rules).expect("a good script");
        let config = format!(r#"{{"faults": {rules}}}"#);
        for text in [&rules, &config, &noise] {
            fuzzing::settings(text.as_bytes());
            fuzzing::settings(text.get(..cut).unwrap_or(text).as_bytes());
        }
    }
}
