//! The strict and the loose reading of frames agree.

use crate::json::field::{Field, strict};
use crate::{answer, native, openai, triton};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn text() -> impl Strategy<Value = Value> {
    prop_oneof![
        6 => "\\PC{0,12}".prop_map(Value::from),
        2 => "[\"\\\\\\n🙂a]{0,40}".prop_map(Value::from),
        1 => Just(Value::Null),
    ]
}

fn count() -> impl Strategy<Value = Value> {
    prop_oneof![
        8 => any::<u32>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => any::<f64>().prop_map(Value::from),
    ]
}

/// Any JSON, a few levels deep.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![text(), count(), any::<bool>().prop_map(Value::from)];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec(("[a-z\"]{1,3}", inner), 0..3)
                .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// An object that has each key with an even chance, its value seldom of a wrong type, and one key more.
fn object(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let field = |(key, value): (&'static str, BoxedStrategy<Value>)| {
        let value = prop_oneof![30 => value, 1 => anything()];
        prop::option::of(value).prop_map(move |value| value.map(|value| (key.to_owned(), value)))
    };
    let fields: Vec<_> = fields.into_iter().map(field).collect();
    (fields, "[a-z]{3,6}", anything())
        .prop_map(|(fields, key, value)| {
            let mut map: Map<String, Value> = fields.into_iter().flatten().collect();
            map.entry(key).or_insert(value);
            Value::Object(map)
        })
        .boxed()
}

fn list(item: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop::collection::vec(item, 0..3).prop_map(Value::from).boxed()
}

fn openai_frame() -> BoxedStrategy<Value> {
    let function = || object(vec![("name", text().boxed()), ("arguments", text().boxed())]);
    let message = || {
        object(vec![
            ("content", text().boxed()),
            ("reasoning_content", text().boxed()),
            ("reasoning", text().boxed()),
            ("refusal", text().boxed()),
            ("tool_calls", list(object(vec![("function", function())]))),
            ("function_call", function()),
        ])
    };
    let choice = object(vec![
        ("index", count().boxed()),
        ("text", text().boxed()),
        ("delta", message()),
        ("message", message()),
        ("finish_reason", text().boxed()),
        ("meta_info", object(vec![("spec_accept_length", count().boxed())])),
    ]);
    let details = object(vec![("cached_tokens", count().boxed())]);
    let usage = object(vec![
        ("prompt_tokens", count().boxed()),
        ("completion_tokens", count().boxed()),
        ("prompt_tokens_details", details),
    ]);
    object(vec![
        ("choices", list(choice)),
        ("usage", usage),
        ("sglext", object(vec![("cached_tokens_details", cached())])),
        ("error", anything().boxed()),
    ])
}

fn cached() -> BoxedStrategy<Value> {
    object(vec![
        ("device", count().boxed()),
        ("host", count().boxed()),
        ("storage", count().boxed()),
        ("storage_backend", text().boxed()),
    ])
}

fn native_frame() -> BoxedStrategy<Value> {
    let finish = object(vec![("type", text().boxed()), ("message", text().boxed())]);
    let meta = object(vec![
        ("finish_reason", prop_oneof![finish, text()].boxed()),
        ("prompt_tokens", count().boxed()),
        ("completion_tokens", count().boxed()),
        ("cached_tokens", count().boxed()),
        ("cached_tokens_details", cached()),
        ("spec_accept_length", count().boxed()),
        ("spec_verify_ct", count().boxed()),
    ]);
    object(vec![
        ("index", count().boxed()),
        ("text", text().boxed()),
        ("meta_info", meta),
        ("error", anything().boxed()),
    ])
}

fn triton_frame() -> BoxedStrategy<Value> {
    object(vec![("text_output", text().boxed()), ("error", anything().boxed())])
}

fn embeddings_answer() -> BoxedStrategy<Value> {
    let row = object(vec![("embedding", anything().boxed())]);
    let usage = object(vec![("prompt_tokens", count().boxed())]);
    object(vec![("data", list(row)), ("usage", usage), ("error", anything().boxed())])
}

/// Reads a document both ways. Returns whether the strict one took it.
fn compare<F>(written: &str) -> Result<bool, TestCaseError>
where
    F: for<'a> AsFrame<'a>,
{
    let value: Value = serde_json::from_str(written).expect("valid JSON");
    let repaired = crate::json::value(written.as_bytes()).ok();
    prop_assert_eq!(repaired.as_ref(), Some(&value), "repairing changed a valid document");
    let Some(frame) = strict::<<F as AsFrame<'_>>::Frame>(written.as_bytes()) else {
        return Ok(false);
    };
    prop_assert_eq!(frame, <F as AsFrame<'_>>::Frame::loose(&value));
    Ok(true)
}

/// Names a frame type for any lifetime.
trait AsFrame<'a> {
    type Frame: Field<'a> + PartialEq + std::fmt::Debug;
}

struct OpenAi;
struct Native;
struct Triton;
struct Embeddings;

impl<'a> AsFrame<'a> for OpenAi {
    type Frame = openai::frame::Frame<'a>;
}

impl<'a> AsFrame<'a> for Native {
    type Frame = native::Frame<'a>;
}

impl<'a> AsFrame<'a> for Triton {
    type Frame = triton::Frame<'a>;
}

impl AsFrame<'_> for Embeddings {
    type Frame = answer::Answer;
}

proptest! {
    #[test]
    fn openai_frames_are_read_the_same(value in openai_frame()) {
        compare::<OpenAi>(&value.to_string())?;
        compare::<OpenAi>(&serde_json::to_string_pretty(&value).expect("JSON"))?;
    }

    #[test]
    fn native_frames_are_read_the_same(value in native_frame()) {
        compare::<Native>(&value.to_string())?;
        compare::<Native>(&serde_json::to_string_pretty(&value).expect("JSON"))?;
    }

    #[test]
    fn triton_frames_are_read_the_same(value in triton_frame()) {
        compare::<Triton>(&value.to_string())?;
    }

    #[test]
    fn embeddings_are_read_the_same(value in embeddings_answer()) {
        compare::<Embeddings>(&value.to_string())?;
    }

    #[test]
    fn any_json_is_read_the_same(value in anything()) {
        compare::<OpenAi>(&value.to_string())?;
        compare::<Native>(&value.to_string())?;
    }
}

#[test]
fn ordinary_frames_take_the_strict_way() {
    let value = json!({"id": "x", "choices": [{"index": 0, "delta": {"content": "a\n"},
        "logprobs": null, "finish_reason": null}], "usage": null});
    assert!(matches!(compare::<OpenAi>(&value.to_string()), Ok(true)));
    let value = json!({"text": "a\"b", "output_ids": [1, 2], "meta_info": {"id": "x",
        "finish_reason": {"type": "length", "length": 2}, "prompt_tokens": 8,
        "completion_tokens": 2, "cached_tokens": 0, "e2e_latency": 0.5}});
    assert!(matches!(compare::<Native>(&value.to_string()), Ok(true)));
}
