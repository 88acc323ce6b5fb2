//! The parts of `tokenizer_config.json` and `special_tokens_map.json` that matter here.

use serde_json::{Map, Value};
use tokenizers::AddedToken;

/// The special tokens that have a name of their own, in the order in which Python adds them.
const NAMED: [&str; 7] =
    ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/// What the files beside `tokenizer.json` say. Entries of an unexpected type count as absent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Config {
    fields: Map<String, Value>,
}

impl Config {
    pub(crate) fn new(fields: Map<String, Value>) -> Self {
        Self { fields }
    }

    /// All entries, as JSON.
    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(&self.fields).unwrap_or_default()
    }

    /// True when the begin-of-sequence token is settled here (set, or set to null).
    pub(crate) fn settles_bos(&self) -> bool {
        self.fields.contains_key("bos_token")
    }

    /// Adds the named special tokens of a `special_tokens_map.json` that are not set here.
    pub(crate) fn fill_special_tokens(&mut self, map: &Map<String, Value>) {
        for (key, value) in map {
            let settled = self.fields.get(key).is_some_and(|value| !value.is_null());
            if !settled && (NAMED.contains(&key.as_str()) || key == "additional_special_tokens") {
                self.fields.insert(key.clone(), value.clone());
            }
        }
    }

    /// The text of a named special token (`bos_token`), in its string or its object form.
    pub(crate) fn special(&self, name: &str) -> Option<&str> {
        content(self.fields.get(name)?).filter(|text| !text.is_empty())
    }

    /// Every named special token that is set, with its text.
    pub(crate) fn named_specials(&self) -> impl Iterator<Item = (&'static str, &str)> {
        NAMED.into_iter().filter_map(|name| Some((name, self.special(name)?)))
    }

    /// The text of a token that only some models have, by its name there (`image_token`).
    pub(crate) fn named(&self, name: &str) -> Option<&str> {
        let token = self.fields.get(name).or_else(|| {
            let groups = ["extra_special_tokens", "model_specific_special_tokens"];
            groups.iter().find_map(|group| self.fields.get(*group)?.get(name))
        });
        content(token?).filter(|text| !text.is_empty())
    }

    /// The texts that Python's `all_special_tokens` has: those with a name of their own, which end in
    /// `_token`, and the further ones. Not those that are only declared special in `tokenizer.json`.
    pub(crate) fn all_specials(&self) -> Vec<&str> {
        let named = self.fields.iter().filter(|(name, _)| name.ends_with("_token"));
        let further = ["extra_special_tokens", "model_specific_special_tokens"]
            .into_iter()
            .chain(
                (!self.fields.contains_key("extra_special_tokens"))
                    .then_some("additional_special_tokens"),
            )
            .filter_map(|key| self.fields.get(key))
            .flat_map(|group| match group {
                Value::Array(tokens) => tokens.iter().collect::<Vec<_>>(),
                Value::Object(tokens) => tokens.values().collect(),
                _ => Vec::new(),
            });
        named.map(|(_, token)| token).chain(further).filter_map(content).collect()
    }

    /// All tokens to be known as added tokens, in Python's order.
    pub(crate) fn tokens_to_add(&self) -> Vec<AddedToken> {
        let mut decoder: Vec<(u64, &Value)> = self
            .fields
            .get("added_tokens_decoder")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .filter_map(|(id, token)| Some((id.parse().ok()?, token)))
            .collect();
        decoder.sort_by_key(|(id, _)| *id);
        let declared = decoder.into_iter().filter_map(|(_, token)| added_token(token, false));
        let named = NAMED.iter().filter_map(|name| added_token(self.fields.get(*name)?, true));
        let further = ["additional_special_tokens", "extra_special_tokens"]
            .into_iter()
            .filter_map(|key| self.fields.get(key)?.as_array())
            .flatten()
            .filter_map(|token| added_token(token, true));
        declared.chain(named).chain(further).collect()
    }

    /// `(add_bos_token, add_eos_token)`, if the file sets either: then Python writes the
    /// post-processor anew, whatever `tokenizer.json` says.
    pub(crate) fn adds_bos_eos(&self) -> Option<(bool, bool)> {
        let flag = |key| self.fields.get(key).map(|value| value.as_bool().unwrap_or(false));
        let (bos, eos) = (flag("add_bos_token"), flag("add_eos_token"));
        (bos.is_some() || eos.is_some()).then(|| (bos.unwrap_or(false), eos.unwrap_or(false)))
    }

    /// Whether decoded text is to be cleaned of spaces before punctuation: `(asked, insisted)`.
    /// Python obeys the former except for BPE models, which take the latter.
    pub(crate) fn cleans_spaces(&self) -> (bool, bool) {
        const INSIST: &str =
            "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output";
        let flag = |key| self.fields.get(key).and_then(Value::as_bool).unwrap_or(false);
        (flag("clean_up_tokenization_spaces"), flag(INSIST))
    }

    /// The chat template: a string, or the `default` one of a list of named ones.
    pub(crate) fn chat_template(&self) -> Option<&str> {
        match self.fields.get("chat_template")? {
            Value::String(text) => Some(text),
            Value::Array(named) => {
                let default = |entry: &&Value| entry.get("name").is_some_and(|n| n == "default");
                named.iter().find(default)?.get("template")?.as_str()
            }
            _ => None,
        }
    }
}

fn content(token: &Value) -> Option<&str> {
    token.as_str().or_else(|| token.get("content")?.as_str())
}

fn added_token(token: &Value, named: bool) -> Option<AddedToken> {
    let text = content(token).filter(|text| !text.is_empty())?;
    let flag = |key: &str| token.get(key).and_then(Value::as_bool);
    let special = named || flag("special").unwrap_or(false);
    Some(
        AddedToken::from(text, special)
            .single_word(flag("single_word").unwrap_or(false))
            .lstrip(flag("lstrip").unwrap_or(false))
            .rstrip(flag("rstrip").unwrap_or(false))
            .normalized(flag("normalized").unwrap_or(!special)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config(fields: Value) -> Config {
        let Value::Object(fields) = fields else { panic!("an object") };
        Config::new(fields)
    }

    #[test]
    fn a_special_token_is_a_string_or_an_object() {
        assert_eq!(config(json!({"bos_token": "<s>"})).special("bos_token"), Some("<s>"));
        let object = json!({"bos_token": {"content": "<s>", "special": true}});
        assert_eq!(config(object).special("bos_token"), Some("<s>"));
        assert_eq!(config(json!({"bos_token": null})).special("bos_token"), None);
        assert_eq!(config(json!({"bos_token": ""})).special("bos_token"), None);
        assert_eq!(config(json!({"bos_token": 7})).special("bos_token"), None);
    }

    #[test]
    fn special_tokens_have_names_or_stand_in_a_list() {
        let mut config = config(json!({
            "bos_token": "<s>", "eos_token": {"content": "</s>"}, "pad_token": null,
            "image_token": "<i>", "add_bos_token": true, "model_max_length": 4,
            "additional_special_tokens": ["<a>", {"content": "<b>"}],
            "added_tokens_decoder": {"9": {"content": "<reserved>", "special": true}},
        }));
        assert_eq!(config.all_specials(), ["<s>", "</s>", "<i>", "<a>", "<b>"]);
        assert_eq!(config.named("image_token"), Some("<i>"));
        assert_eq!(config.named("boi_token"), None);
        let extra = json!({"boi_token": "<x>", "eoi_token": "<y>"});
        config.fields.insert("extra_special_tokens".into(), extra);
        assert_eq!(config.all_specials(), ["<s>", "</s>", "<i>", "<x>", "<y>"]);
        assert_eq!(config.named("boi_token"), Some("<x>"));
    }

    #[test]
    fn the_default_template_of_a_list_is_used() {
        let list = json!({"chat_template": [
            {"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}
        ]});
        assert_eq!(config(list).chat_template(), Some("b"));
        assert_eq!(config(json!({"chat_template": "c"})).chat_template(), Some("c"));
        assert_eq!(config(json!({"chat_template": null})).chat_template(), None);
    }

    #[test]
    fn the_special_tokens_map_fills_gaps_only() {
        let mut config = config(json!({"bos_token": "<s>", "eos_token": null}));
        let map = json!({"bos_token": "x", "eos_token": "</s>", "other": 1});
        config.fill_special_tokens(map.as_object().unwrap());
        assert_eq!(config.special("bos_token"), Some("<s>"));
        assert_eq!(config.special("eos_token"), Some("</s>"));
        assert!(!config.fields.contains_key("other"));
    }
}
