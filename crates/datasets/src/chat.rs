//! Messages as the text that a model sees.

use serde_json::Value;
use servebench_tokens::{ChatTemplate, Tokenizer, TokensError};

/// Tokens of `messages` as the tokenizer's chat template puts them, with the start of the assistant's
/// turn; without a template they are counted as lines of `role: content`.
pub fn count_messages(messages: &[Value], tokenizer: &Tokenizer) -> Result<u32, TokensError> {
    ChatText::new(tokenizer)?.count(messages)
}

/// Renders messages by the tokenizer's chat template where it has one.
pub(crate) struct ChatText<'a> {
    tokenizer: &'a Tokenizer,
    template: Option<&'a ChatTemplate>,
}

/// A rendered conversation.
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// Whether the template made it; if not, it is lines of `role: content`.
    pub(crate) by_template: bool,
}

impl<'a> ChatText<'a> {
    pub(crate) fn new(tokenizer: &'a Tokenizer) -> Result<Self, TokensError> {
        let template = match tokenizer.chat_template() {
            Ok(template) => Some(template),
            Err(TokensError::NoChatTemplate { .. }) => None,
            Err(error) => return Err(error),
        };
        Ok(Self { tokenizer, template })
    }

    /// The text of `messages`, followed by the start of the assistant's turn.
    pub(crate) fn render(&self, messages: &[Value]) -> Rendered {
        if let Some(text) = self.template.and_then(|template| template.render(messages, true).ok())
        {
            return Rendered { text, by_template: true };
        }
        let line = |message: &Value| {
            let field = |key: &str| message.get(key).map(plain).unwrap_or_default();
            format!("{}: {}", field("role"), field("content"))
        };
        let text = messages.iter().map(line).collect::<Vec<_>>().join("\n");
        Rendered { text, by_template: false }
    }

    /// Tokens of `messages`: a template writes its special tokens itself.
    pub(crate) fn count(&self, messages: &[Value]) -> Result<u32, TokensError> {
        let Rendered { text, by_template } = self.render(messages);
        self.tokenizer.count(&text, !by_template)
    }
}

/// The text of a content: a string, or the text parts of a list.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn without_a_template_messages_are_lines() {
        let tokenizer = Tokenizer::byte_level();
        let chat = ChatText::new(&tokenizer).unwrap();
        let parts = json!([{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]);
        let messages = [
            json!({"role": "system", "content": "x\ny"}),
            json!({"role": "user", "content": parts}),
            json!({"role": "assistant", "content": null}),
            json!("no object"),
        ];
        let rendered = chat.render(&messages);
        assert_eq!(rendered.text, "system: x\ny\nuser: ab\nassistant: \n: ");
        assert!(!rendered.by_template);
        assert_eq!(chat.count(&messages).unwrap() as usize, rendered.text.len());
    }
}
