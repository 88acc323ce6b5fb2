//! Bodies of `/v1/responses` and of the endpoints that answer with vectors or scores.

use super::{Content, Message, Prompts, Rid};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The body of `/v1/responses`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ResponsesBody<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) input: Option<Input<'a>>,
    pub(crate) max_output_tokens: Option<u32>,
    pub(crate) stream: Option<bool>,
    pub(crate) ignore_eos: Option<bool>,
}

/// `input` of `/v1/responses`: a text, or messages, whose content is kept.
#[derive(Debug)]
pub(crate) struct Input<'a>(pub(crate) Content<'a>);

/// The body of the endpoints that answer with vectors or scores.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct EmbeddingsBody<'a> {
    #[serde(borrow)]
    pub(crate) model: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) input: Option<Prompts<'a>>,
    /// What the input is to an Infinity server: `image` makes it an image's address.
    #[serde(borrow)]
    pub(crate) modality: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) messages: Option<Vec<Message<'a>>>,
    #[serde(borrow)]
    pub(crate) query: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) documents: Option<Vec<Cow<'a, str>>>,
    /// Longer inputs are cut to this many tokens; -1 stands for the context.
    pub(crate) truncate_prompt_tokens: Option<i64>,
    #[serde(borrow)]
    pub(crate) encoding_format: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) rid: Option<Rid<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Input<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct InputVisitor;
        impl<'de> Visitor<'de> for InputVisitor {
            type Value = Input<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of messages")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Input(Content::text(Cow::Borrowed(text))))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Input(Content::text(Cow::Owned(text.to_owned()))))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut content = Content::default();
                while let Some(message) = seq.next_element::<Message<'de>>()? {
                    content.texts.extend(message.content.texts);
                    content.images.extend(message.content.images);
                }
                Ok(Input(content))
            }
        }
        from.deserialize_any(InputVisitor)
    }
}
