//! How the fields of a body are merged.

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use servebench_backends::{BackendKind, GenerateOptions};
use servebench_core::{Picture, Pictures, Prompt, Sample, Session};
use std::sync::Arc;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(map) = value else { panic!("{value} is no object") };
    map
}

fn encode(
    kind: BackendKind,
    options: GenerateOptions,
    sample: &Sample,
    adapter: Option<&str>,
) -> Map<String, Value> {
    let body = kind.protocol(options).encode(sample, adapter);
    serde_json::from_slice(&body).expect("an object")
}

fn sample() -> Sample {
    Sample { prompt: "hi".into(), output_len: 4, ..Sample::default() }
}

#[test]
fn a_stream_is_asked_for_usage() {
    let asked = |options: GenerateOptions, row: Value| {
        let sample = Sample { extra_body: object(row), ..sample() };
        encode(BackendKind::Vllm, options, &sample, None).get("stream_options").cloned()
    };
    let default = GenerateOptions::default;
    let with = |extra: Value| GenerateOptions { extra_body: object(extra), ..default() };
    assert_eq!(asked(default(), json!({})), Some(json!({"include_usage": true})));
    assert_eq!(asked(GenerateOptions { stream: false, ..default() }, json!({})), None);
    assert_eq!(asked(GenerateOptions { include_usage: false, ..default() }, json!({})), None);
    assert_eq!(asked(default(), json!({"stream": false})), None, "the row wins");
    assert_eq!(
        asked(with(json!({"stream_options": {"continuous_usage_stats": true}})), json!({})),
        Some(json!({"continuous_usage_stats": true, "include_usage": true}))
    );
    assert_eq!(
        asked(with(json!({"stream_options": {"include_usage": false}})), json!({})),
        Some(json!({"include_usage": false})),
        "what the user says stays"
    );
    assert_eq!(asked(with(json!({"stream_options": null})), json!({})), Some(Value::Null));
    let native = encode(BackendKind::Sglang, default(), &sample(), None);
    assert!(!native.contains_key("stream_options"));
}

#[test]
fn an_adapter_replaces_the_model_on_openai_routes_only() {
    let extra_body = object(json!({"model": "other", "lora_path": "mine"}));
    let options = || GenerateOptions { extra_body: extra_body.clone(), ..Default::default() };
    let chat = encode(BackendKind::VllmChat, options(), &sample(), Some("a"));
    assert_eq!((&chat["model"], &chat["lora_path"]), (&json!("a"), &json!("a")));
    let native = encode(BackendKind::Sglang, options(), &sample(), Some("a"));
    assert_eq!(native["lora_path"], "mine", "the extra body wins here");
}

#[test]
fn messages_go_out_as_they_are() {
    let messages = vec![json!({"role": "system", "content": "be brief"}), json!({"role": "user"})];
    let sample = Sample { prompt: Prompt::Messages(messages.clone()), ..sample() };
    let body = encode(BackendKind::SglangOaiChat, GenerateOptions::default(), &sample, None);
    assert_eq!(body["messages"], json!(messages));
}

#[test]
fn pictures_go_before_the_text_or_beside_it() {
    let picture = |uri: &str| Picture { uri: uri.into(), width: 1, height: 1 };
    let list = vec![picture("data:image/png;base64,AA=="), picture("data:image/png;base64,BB==")];
    let pictures = Some(Box::new(Pictures { list, tokens: None }));
    let sample = Sample { pictures, ..sample() };
    let chat = encode(BackendKind::VllmChat, GenerateOptions::default(), &sample, None);
    let part = |uri: &str| json!({"type": "image_url", "image_url": {"url": uri}});
    let want = json!([{"role": "user", "content": [part("data:image/png;base64,AA=="),
        part("data:image/png;base64,BB=="), {"type": "text", "text": "hi"}]}]);
    assert_eq!(chat["messages"], want);
    assert!(!chat.contains_key("image_data"));
    let extra_body = object(json!({"image_data": "theirs"}));
    let options = GenerateOptions { extra_body, ..Default::default() };
    let native = encode(BackendKind::SglangNative, options, &sample, None);
    assert_eq!(native["text"], "hi");
    assert_eq!(
        native["image_data"],
        json!(["data:image/png;base64,AA==", "data:image/png;base64,BB=="])
    );
}

#[test]
fn a_conversation_is_cut_where_its_messages_go() {
    let user = |text: &str| json!({"role": "user", "content": text});
    let turns = vec![
        vec![json!({"role": "system", "content": "\"messages\":[]"}), user("a")],
        vec![user("b")],
    ];
    let options = || GenerateOptions { model: "\"messages\":[]".into(), ..Default::default() };
    let extra_body = object(json!({"temperature": 0.5, "top": {"messages": []}}));
    let sample = Sample { prompt: Prompt::Turns(turns.clone()), extra_body, ..sample() };
    let chat = BackendKind::VllmChat.protocol(options());
    let conversation = Arc::new(chat.conversation(&sample, Some("adapter")).expect("turns"));
    let (mut session, first) = Session::start(&conversation);
    assert_eq!(first, chat.encode(&sample, Some("adapter")));
    let history = [&turns[0][..], &[json!({"role": "assistant", "content": "1\n"})], &turns[1]];
    let whole = Sample { prompt: Prompt::Messages(history.concat()), ..sample.clone() };
    assert_eq!(session.next("1\n"), Some(chat.encode(&whole, Some("adapter"))));
    assert_eq!(session.next("2"), None);

    let one = Sample { prompt: Prompt::Messages(turns[0].clone()), ..sample.clone() };
    assert_eq!(chat.conversation(&one, None), None);
    for kind in [BackendKind::Sglang, BackendKind::Vllm] {
        assert_eq!(kind.protocol(options()).conversation(&sample, None), None, "{kind}");
    }
    // Messages of the command line leave no place for the conversation's.
    let extra_body = object(json!({"messages": [{"role": "user", "content": "mine"}]}));
    let taken = GenerateOptions { extra_body, ..options() };
    assert_eq!(BackendKind::VllmChat.protocol(taken).conversation(&sample, None), None);
}

#[test]
fn native_options_override_the_extra_body() {
    let options = GenerateOptions {
        extra_body: object(json!({"top_logprobs_num": 9, "sampling_params": {"n": 2}})),
        top_logprobs_num: 2,
        ..Default::default()
    };
    let body = encode(BackendKind::Sglang, options, &sample(), None);
    assert_eq!(body["top_logprobs_num"], 2);
    assert_eq!(body["sampling_params"], json!({"n": 2}), "replaced as a whole");
}

fn extra() -> impl Strategy<Value = Map<String, Value>> {
    let key = prop_oneof![
        Just("temperature".to_owned()),
        Just("ignore_eos".to_owned()),
        Just("stream".to_owned()),
        Just("stream_options".to_owned()),
        Just("max_tokens".to_owned()),
        "[a-c]",
    ];
    let value =
        prop_oneof![any::<bool>().prop_map(Value::from), any::<i32>().prop_map(Value::from)];
    prop::collection::vec((key, value), 0..5).prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    /// A row's field wins over the command line's, and that over the built-in one.
    #[test]
    fn the_nearest_field_wins(
        kind in prop::sample::select(BackendKind::all().collect::<Vec<_>>()),
        global in extra(),
        row in extra(),
    ) {
        let options = GenerateOptions { extra_body: global.clone(), ..Default::default() };
        let builtin = encode(kind, GenerateOptions::default(), &sample(), None);
        let sample = Sample { extra_body: row.clone(), ..sample() };
        let body = encode(kind, options, &sample, None);
        for (key, value) in &body {
            let want = row.get(key).or_else(|| global.get(key)).or_else(|| builtin.get(key));
            prop_assert_eq!(Some(value), want, "{}", key);
        }
        for key in row.keys().chain(global.keys()) {
            prop_assert!(body.contains_key(key));
        }
    }
}
