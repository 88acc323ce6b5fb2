//! A file of conversations.

use super::{MultiTurnConversation, wrong};
use crate::DatasetError;
use serde::Deserialize;
use std::collections::HashSet;
use std::path::Path;

#[derive(Deserialize)]
struct Item {
    id: String,
    messages: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: String,
}

/// The conversations of a file: a JSON array of `{"id", "messages": [{"role", "content"}, …]}`.
pub(super) fn read(text: &str, path: &Path) -> Result<Vec<MultiTurnConversation>, DatasetError> {
    let items: Vec<Item> = serde_json::from_str(text).map_err(|source| DatasetError::Json {
        path: path.to_owned(),
        rows: 0,
        source,
    })?;
    if items.is_empty() {
        return Err(wrong(path, "[]", "there is no conversation"));
    }
    let mut known = HashSet::new();
    let mut conversations = Vec::with_capacity(items.len());
    for (at, item) in items.into_iter().enumerate() {
        if !known.insert(item.id.clone()) {
            return Err(wrong(path, format!("[{at}].id"), format!("`{}` is there twice", item.id)));
        }
        if item.messages.is_empty() {
            return Err(wrong(path, format!("[{at}].messages"), "nothing is said"));
        }
        let mut messages = Vec::with_capacity(item.messages.len());
        for (turn, message) in item.messages.into_iter().enumerate() {
            let role = if turn.is_multiple_of(2) { "user" } else { "assistant" };
            if message.role != role {
                let field = format!("[{at}].messages[{turn}].role");
                let problem = format!(
                    "must be `{role}`, not `{}`: user and assistant take turns, and the user begins",
                    message.role
                );
                return Err(wrong(path, field, problem));
            }
            messages.push(message.content);
        }
        conversations.push(MultiTurnConversation { id: item.id, messages });
    }
    Ok(conversations)
}
