//! Bodies of the fuzz targets: any bytes in, no panic and no endless work.

use crate::{ChatTemplate, without_leading};
use serde_json::json;

/// Bytes as the source of a chat template.
pub fn chat_template(bytes: &[u8]) {
    let source = String::from_utf8_lossy(bytes);
    let specials = vec![("bos_token", "<s>".to_owned()), ("eos_token", "</s>".to_owned())];
    let Ok(template) = ChatTemplate::new("fuzz", &source, specials) else { return };
    let messages = [json!({"role": "user", "content": "a<s>b"})];
    if let Ok(text) = template.render(&messages, true) {
        let cut = without_leading(&text, Some("<s>"));
        assert!(text.ends_with(cut), "only the front may go");
    }
}

/// Bytes as a `tokenizer_config.json`, with the template in it.
pub fn tokenizer_config(bytes: &[u8]) {
    let Ok(fields) = serde_json::from_slice(bytes) else { return };
    let config = crate::config::Config::new(fields);
    let added = config.tokens_to_add();
    assert!(added.iter().all(|token| !token.content.is_empty()), "an empty token");
    if let Some(source) = config.chat_template() {
        chat_template(source.as_bytes());
    }
}
