//! ShareGPT files to files of conversations.

use super::{MultiTurnConversation, wrong};
use crate::{DatasetError, corpus};
use serde::Deserialize;
use servebench_core::random::PythonRandom;
use std::collections::HashMap;
use std::path::Path;

/// Which conversations of a ShareGPT file are kept, and how much of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareGptConversion {
    /// Seed of the order, and of the choice.
    pub seed: u32,
    /// Most conversations, chosen at random.
    pub max_items: Option<usize>,
    /// Fewest messages.
    pub min_turns: Option<usize>,
    /// Messages after which a conversation is cut.
    pub max_turns: Option<usize>,
    /// Fewest characters of every message.
    pub min_content_len: Option<usize>,
    /// Most characters of every message.
    pub max_content_len: Option<usize>,
    /// Whether messages may have characters that are not ASCII, as those in most languages but English have.
    pub any_language: bool,
}

/// What became of a ShareGPT file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareGptConverted {
    /// Rows of the file: parts of conversations.
    pub parts: usize,
    /// Conversations in them.
    pub conversations: usize,
    /// Those that are kept, before any choice.
    pub kept: Vec<MultiTurnConversation>,
    /// Places in `kept` of those that were chosen, in their order; `None` if all were.
    pub chosen: Option<Vec<u32>>,
}

#[derive(Deserialize)]
struct Part {
    id: String,
    conversations: Vec<Message>,
}

#[derive(Deserialize)]
struct Message {
    from: String,
    value: String,
}

/// Reads a ShareGPT file: a list of `{"id": "<conversation>_<part>", "conversations": [{"from", "value"}, …]}`.
///
/// # Errors
///
/// A file that cannot be read, is not what it should be, or has a speaker that nobody knows.
pub fn convert_share_gpt(
    path: &Path,
    options: &ShareGptConversion,
) -> Result<ShareGptConverted, DatasetError> {
    convert(&corpus::read(path)?, path, options)
}

pub(super) fn convert(
    text: &str,
    path: &Path,
    options: &ShareGptConversion,
) -> Result<ShareGptConverted, DatasetError> {
    let mut parts: Vec<Part> = serde_json::from_str(text).map_err(|source| DatasetError::Json {
        path: path.to_owned(),
        rows: 0,
        source,
    })?;
    let mut random = PythonRandom::new(options.seed);
    random.shuffle(&mut parts);
    let count = parts.len();
    let talks = merge(parts);
    let mut converted = ShareGptConverted { parts: count, ..ShareGptConverted::default() };
    for (id, said) in talks {
        converted.conversations += 1;
        if options.min_turns.is_some_and(|least| said.len() < least) {
            continue;
        }
        if let Some(messages) = options.messages(&id, said, path)? {
            converted.kept.push(MultiTurnConversation { id, messages });
        }
    }
    let kept = converted.kept.len();
    if let Some(most) = options.max_items.filter(|most| *most < kept) {
        converted.chosen = Some(random.sample_indices(kept as u32, most as u32));
    }
    Ok(converted)
}

/// Puts the parts of conversations together, each in the order of the rows, without what a part repeats of
/// the speaker before it. In the order in which they first come.
fn merge(parts: Vec<Part>) -> Vec<(String, Vec<Message>)> {
    let mut talks: Vec<(String, Vec<Message>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for Part { id, mut conversations } in parts {
        let id = id.rsplit_once('_').map_or(id.as_str(), |(id, _)| id);
        let place = *places.entry(id.to_owned()).or_insert_with(|| {
            talks.push((id.to_owned(), Vec::new()));
            talks.len() - 1
        });
        let said = &mut talks[place].1;
        let speaker = |message: Option<&Message>| message.map(|it| it.from.clone());
        let last = speaker(said.last());
        if last.is_some() && last == speaker(conversations.first()) {
            drop(conversations.remove(0));
        }
        said.append(&mut conversations);
    }
    talks.retain(|(_, said)| !said.is_empty());
    talks
}

impl ShareGptConversion {
    /// What is said in a conversation; `None` if it is not to be kept.
    fn messages(
        &self,
        id: &str,
        said: Vec<Message>,
        path: &Path,
    ) -> Result<Option<Vec<String>>, DatasetError> {
        let mut messages = Vec::with_capacity(said.len());
        let mut in_turn = true;
        for (at, Message { from, value }) in said.into_iter().enumerate() {
            let is_user = match from.as_str() {
                "human" | "user" => Some(true),
                "gpt" | "bing" | "chatgpt" | "bard" => Some(false),
                "system" => None,
                other => {
                    let problem = format!("`{other}` is nobody who speaks (conversation {id})");
                    return Err(wrong(path, "from", problem));
                }
            };
            // The answer to something that is in another file.
            if at == 0 && is_user != Some(true) {
                continue;
            }
            if self.max_turns.is_some_and(|most| at >= most) {
                break;
            }
            in_turn &= is_user == Some(messages.len().is_multiple_of(2)) && self.takes(&value);
            messages.push(value);
        }
        Ok((in_turn && !messages.is_empty()).then_some(messages))
    }

    fn takes(&self, content: &str) -> bool {
        let length = content.chars().count();
        self.min_content_len.is_none_or(|least| length >= least)
            // As in the script, 0 is no limit.
            && self.max_content_len.is_none_or(|most| most == 0 || length <= most)
            && (self.any_language || content.is_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn run(rows: &Value, options: &ShareGptConversion) -> Result<ShareGptConverted, String> {
        convert(&rows.to_string(), Path::new("shared.json"), options).map_err(|e| e.to_string())
    }

    fn part(id: &str, said: &[(&str, &str)]) -> Value {
        let message = |(from, value): &(&str, &str)| json!({"from": from, "value": value});
        json!({"id": id, "conversations": said.iter().map(message).collect::<Vec<_>>()})
    }

    #[test]
    fn english_is_kept_and_the_rest_if_it_is_wanted() {
        let rows = json!([
            part("a_0", &[("human", "plain"), ("gpt", "text")]),
            part("b_0", &[("human", "plain"), ("gpt", "täxt")]),
        ]);
        let kept = |any_language| {
            let options = ShareGptConversion { any_language, ..ShareGptConversion::default() };
            let mut ids: Vec<String> =
                run(&rows, &options).unwrap().kept.into_iter().map(|it| it.id).collect();
            ids.sort();
            ids
        };
        assert_eq!(kept(false), ["a"]);
        assert_eq!(kept(true), ["a", "b"]);
    }

    #[test]
    fn parts_are_put_together_and_what_is_out_of_turn_is_left_out() {
        let rows =
            json!([part("a_0", &[("gpt", "0"), ("user", "1"), ("bard", "2"), ("human", "3")])]);
        let found = run(&rows, &ShareGptConversion::default()).unwrap();
        assert_eq!(found.kept[0].messages, ["1", "2", "3"]);
        let cut = ShareGptConversion { max_turns: Some(3), ..ShareGptConversion::default() };
        assert_eq!(run(&rows, &cut).unwrap().kept[0].messages, ["1", "2"], "the first one counts");
        let twice = json!([part("a_0", &[("user", "1"), ("user", "2")])]);
        assert!(run(&twice, &ShareGptConversion::default()).unwrap().kept.is_empty());
        let merged = merge(
            serde_json::from_value(json!([
                part("a_0", &[("user", "1"), ("gpt", "2")]),
                part("a_1", &[("gpt", "2"), ("user", "3")]),
            ]))
            .unwrap(),
        );
        let values: Vec<&str> = merged[0].1.iter().map(|message| message.value.as_str()).collect();
        assert_eq!(values, ["1", "2", "3"]);
    }

    #[test]
    fn an_unknown_speaker_is_an_error() {
        let said = run(&json!([part("x_0", &[("alien", "1")])]), &ShareGptConversion::default());
        assert!(said.unwrap_err().contains("`alien` is nobody who speaks (conversation x)"));
    }
}
