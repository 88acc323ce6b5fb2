//! Request bodies of the generating endpoints, read leniently: unknown fields are ignored, known
//! ones must have their type.

mod others;

pub(crate) use others::{EmbeddingsBody, ResponsesBody};

use crate::picture::Images;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The body of `/generate`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct NativeBody<'a> {
    #[serde(borrow)]
    pub(crate) text: Option<Prompts<'a>>,
    #[serde(borrow)]
    pub(crate) input_ids: Option<Prompts<'a>>,
    #[serde(borrow)]
    pub(crate) image_data: Option<Images<'a>>,
    pub(crate) sampling_params: Option<OneOrMany<Sampling>>,
    pub(crate) stream: Option<bool>,
    #[serde(borrow)]
    pub(crate) rid: Option<Rid<'a>>,
}

/// The body of `/v1/completions`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct CompletionsBody<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) prompt: Option<Prompts<'a>>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) n: Option<u32>,
    pub(crate) best_of: Option<u32>,
    pub(crate) stream: Option<bool>,
    pub(crate) stream_options: Option<StreamOptions>,
    pub(crate) ignore_eos: Option<bool>,
    pub(crate) structured_outputs: Option<Structured>,
    pub(crate) return_cached_tokens_details: Option<bool>,
    #[serde(borrow)]
    pub(crate) rid: Option<Rid<'a>>,
}

/// The body of `/v1/chat/completions`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ChatBody<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) messages: Option<Vec<Message<'a>>>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) max_completion_tokens: Option<u32>,
    pub(crate) n: Option<u32>,
    pub(crate) stream: Option<bool>,
    pub(crate) stream_options: Option<StreamOptions>,
    pub(crate) ignore_eos: Option<bool>,
    pub(crate) structured_outputs: Option<Structured>,
    pub(crate) return_cached_tokens_details: Option<bool>,
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) tool_choice: Option<ToolChoice>,
    pub(crate) chat_template_kwargs: Option<TemplateOptions>,
    #[serde(borrow)]
    pub(crate) rid: Option<Rid<'a>>,
}

/// The body of Triton's `generate_stream`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TritonBody<'a> {
    #[serde(borrow)]
    pub(crate) text_input: Option<Cow<'a, str>>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) min_length: Option<u32>,
    pub(crate) stream: Option<bool>,
    pub(crate) accumulate_tokens: Option<bool>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct StreamOptions {
    pub(crate) include_usage: Option<bool>,
    pub(crate) continuous_usage_stats: Option<bool>,
}

/// `structured_outputs`: only a schema of JSON is heeded, and of it only that the reply be JSON.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Structured {
    pub(crate) json: Option<IgnoredAny>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TemplateOptions {
    pub(crate) enable_thinking: Option<bool>,
    pub(crate) thinking: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Tool {
    pub(crate) function: Option<Named>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Named {
    pub(crate) name: String,
}

/// `tool_choice`: a word, or an object that names a function.
#[derive(Debug)]
pub(crate) enum ToolChoice {
    None,
    Any,
    Function(String),
}

/// `sampling_params` of `/generate`. A key it does not know is an error, as in the real server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampling {
    pub(crate) max_new_tokens: Option<u32>,
    pub(crate) n: Option<u32>,
    pub(crate) ignore_eos: bool,
    pub(crate) stream_interval: Option<u32>,
}

#[derive(Debug)]
pub(crate) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// `rid`: a name for the request, or one for each of its rows, of which the first is kept.
#[derive(Debug)]
pub(crate) struct Rid<'a>(pub(crate) Option<Cow<'a, str>>);

/// One prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Prompt<'a> {
    Text(Cow<'a, str>),
    Ids(Vec<u32>),
    /// The texts of a chat's messages.
    Chat(Vec<Cow<'a, str>>),
    /// A recording.
    Audio(&'a [u8]),
}

/// The prompts of one request, and whether they came as a list of prompts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Prompts<'a> {
    pub(crate) rows: Vec<Prompt<'a>>,
    pub(crate) batch: bool,
}

/// One chat message; of its content only texts and images matter here.
#[derive(Debug, Deserialize)]
pub(crate) struct Message<'a> {
    #[serde(borrow, default)]
    pub(crate) content: Content<'a>,
}

/// Message content: a text, or parts of which texts and images are kept, or nothing.
#[derive(Debug, Default)]
pub(crate) struct Content<'a> {
    pub(crate) texts: Vec<Cow<'a, str>>,
    pub(crate) images: Vec<Cow<'a, str>>,
}

impl<'a> Content<'a> {
    fn text(text: Cow<'a, str>) -> Self {
        Self { texts: vec![text], images: Vec::new() }
    }
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    image_url: Option<Address<'a>>,
}

#[derive(Deserialize)]
struct Address<'a> {
    #[serde(borrow, default)]
    url: Option<Cow<'a, str>>,
}

/// What may stand in a prompt list.
enum Item<'a> {
    Id(u32),
    Row(Prompt<'a>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Item<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ItemVisitor;
        impl<'de> Visitor<'de> for ItemVisitor {
            type Value = Item<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a token id or a list of token ids")
            }
            fn visit_u64<E: serde::de::Error>(self, id: u64) -> Result<Self::Value, E> {
                u32::try_from(id).map(Item::Id).map_err(|_| E::custom("token id out of range"))
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Item::Row(Prompt::Text(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Item::Row(Prompt::Text(Cow::Owned(text.to_owned()))))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut ids = Vec::new();
                while let Some(id) = seq.next_element()? {
                    ids.push(id);
                }
                Ok(Item::Row(Prompt::Ids(ids)))
            }
        }
        from.deserialize_any(ItemVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Prompts<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct PromptsVisitor;
        impl<'de> Visitor<'de> for PromptsVisitor {
            type Value = Prompts<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a list of token ids, or a list of either")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Prompts { rows: vec![Prompt::Text(Cow::Borrowed(text))], batch: false })
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Prompts { rows: vec![Prompt::Text(Cow::Owned(text.to_owned()))], batch: false })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let (mut ids, mut rows) = (Vec::new(), Vec::new());
                while let Some(item) = seq.next_element()? {
                    match item {
                        Item::Id(id) if rows.is_empty() => ids.push(id),
                        Item::Row(row) if ids.is_empty() => rows.push(row),
                        _ => return Err(A::Error::custom("token ids and prompts in one list")),
                    }
                }
                if rows.is_empty() {
                    Ok(Prompts { rows: vec![Prompt::Ids(ids)], batch: false })
                } else {
                    Ok(Prompts { rows, batch: true })
                }
            }
        }
        from.deserialize_any(PromptsVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ContentVisitor;
        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a list of content parts, or null")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Content::default())
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut content = Content::default();
                while let Some(part) = seq.next_element::<Part<'de>>()? {
                    content.texts.extend(part.text);
                    content.images.extend(part.image_url.and_then(|address| address.url));
                }
                Ok(content)
            }
        }
        from.deserialize_any(ContentVisitor)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Rid<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let names = Prompts::deserialize(from)?;
        Ok(Self(names.rows.into_iter().find_map(|row| match row {
            Prompt::Text(text) => Some(text),
            _ => None,
        })))
    }
}

impl<'de> Deserialize<'de> for ToolChoice {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ChoiceVisitor;
        impl<'de> Visitor<'de> for ChoiceVisitor {
            type Value = ToolChoice;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`none`, `auto`, `required`, or an object that names a function")
            }
            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<Self::Value, E> {
                match word {
                    "none" => Ok(ToolChoice::None),
                    "auto" | "required" => Ok(ToolChoice::Any),
                    _ => Err(E::unknown_variant(word, &["none", "auto", "required"])),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut choice = ToolChoice::Any;
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    if key == "function" {
                        choice = ToolChoice::Function(map.next_value::<Named>()?.name);
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(choice)
            }
        }
        from.deserialize_any(ChoiceVisitor)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct EitherVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for EitherVisitor<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object or a list of objects")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(OneOrMany::One)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
                Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(seq))
                    .map(OneOrMany::Many)
            }
        }
        from.deserialize_any(EitherVisitor(std::marker::PhantomData))
    }
}

/// Sampling parameters that are understood but change nothing here.
const IGNORED_SAMPLING: &[&str] = &[
    "custom_params",
    "ebnf",
    "frequency_penalty",
    "json_schema",
    "logit_bias",
    "min_new_tokens",
    "min_p",
    "no_stop_trim",
    "presence_penalty",
    "regex",
    "repetition_penalty",
    "sampling_seed",
    "skip_special_tokens",
    "spaces_between_special_tokens",
    "stop",
    "stop_regex",
    "stop_token_ids",
    "structural_tag",
    "temperature",
    "top_k",
    "top_p",
];

impl<'de> Deserialize<'de> for Sampling {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct SamplingVisitor;
        impl<'de> Visitor<'de> for SamplingVisitor {
            type Value = Sampling;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of sampling parameters")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut sampling = Sampling::default();
                while let Some(key) = map.next_key::<Cow<'de, str>>()? {
                    match key.as_ref() {
                        "max_new_tokens" => sampling.max_new_tokens = map.next_value()?,
                        "n" => sampling.n = map.next_value()?,
                        "ignore_eos" => {
                            sampling.ignore_eos = map.next_value::<Option<_>>()?.unwrap_or(false);
                        }
                        "stream_interval" => sampling.stream_interval = map.next_value()?,
                        name if IGNORED_SAMPLING.contains(&name) => {
                            map.next_value::<IgnoredAny>()?;
                        }
                        name => {
                            return Err(A::Error::custom(format_args!(
                                "unknown sampling parameter `{name}`"
                            )));
                        }
                    }
                }
                Ok(sampling)
            }
        }
        from.deserialize_map(SamplingVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompts(json: &str) -> Result<Prompts<'_>, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn prompts_come_in_four_shapes() {
        let text = |text: &'static str| Prompt::Text(Cow::Borrowed(text));
        let one = |row| Prompts { rows: vec![row], batch: false };
        assert_eq!(prompts(r#""hi""#), Ok(one(text("hi"))));
        assert_eq!(prompts("[1, 2]"), Ok(one(Prompt::Ids(vec![1, 2]))));
        let many = |rows| Prompts { rows, batch: true };
        assert_eq!(prompts(r#"["a", "b"]"#), Ok(many(vec![text("a"), text("b")])));
        assert_eq!(
            prompts("[[1], [2, 3]]"),
            Ok(many(vec![Prompt::Ids(vec![1]), Prompt::Ids(vec![2, 3])]))
        );
        assert!(prompts(r#"[1, "a"]"#).is_err());
        assert!(prompts("[-1]").is_err());
        assert!(prompts("[4294967296]").is_err());
        assert!(prompts("{}").is_err());
    }

    #[test]
    fn unknown_sampling_parameters_are_refused() {
        let parse = serde_json::from_str::<OneOrMany<Sampling>>;
        let good = r#"[{"max_new_tokens": 4, "temperature": 0, "ignore_eos": null}]"#;
        assert!(matches!(parse(good), Ok(OneOrMany::Many(list)) if list.len() == 1));
        let error = parse(r#"{"max_tokens": 4}"#).expect_err("unknown").to_string();
        assert!(error.contains("unknown sampling parameter `max_tokens`"), "{error}");
    }

    #[test]
    fn chat_keeps_texts_and_images_of_every_part() {
        let body: ChatBody<'_> = serde_json::from_str(
            r#"{"messages": [{"role": "system", "content": "ab"}, {"role": "user", "content":
                [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "c"}]},
                {"role": "assistant", "content": null}], "tool_choice": {"type": "function",
                "function": {"name": "f"}}, "extra": [1]}"#,
        )
        .expect("a chat");
        let contents: Vec<_> =
            body.messages.unwrap_or_default().into_iter().map(|m| m.content).collect();
        let texts: Vec<_> = contents.iter().flat_map(|content| &content.texts).collect();
        let images: Vec<_> = contents.iter().flat_map(|content| &content.images).collect();
        assert_eq!(texts, ["ab", "c"]);
        assert_eq!(images, ["x"]);
        assert!(matches!(body.tool_choice, Some(ToolChoice::Function(name)) if name == "f"));
    }
}
