//! How many tokens a picture is to a model.
//!
//! A model's processor writes each picture's placeholder in the prompt anew, as many tokens as the model
//! sees. Known are the processors whose rule is a formula over the picture's size and the numbers in
//! the files beside the tokenizer.

mod files;
mod grids;

use super::Size;
use files::Files;
use grids::{Grid, LlavaNext, Pixtral, Resize, Tiles};
use servebench_tokens::{Tokenizer, TokensError};

/// What one processor makes of pictures.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    /// What the chat template writes for a picture.
    pub(crate) placeholder: String,
    /// Put before the tokens of a picture.
    before: String,
    /// The token that is repeated.
    token: String,
    /// Put after them.
    after: String,
    count: Count,
}

/// How often the token comes.
#[derive(Clone, Debug, PartialEq)]
enum Count {
    Fixed(u32),
    /// Qwen2-VL and its heirs: cells of a grid over the picture, resized to a bounded area.
    Resized(Resize),
    /// LLaVA-NeXT: the whole picture, and parts of it in the grid that fits best.
    Next(LlavaNext),
    /// InternVL: tiles of a fixed number of tokens.
    Tiled {
        tiles: Tiles,
        each: u32,
    },
    /// Pixtral: the cells of a grid, and one token more for each row.
    Rows(Pixtral),
}

/// A picture in a prompt: text with one token in it, and how often that token comes besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expansion {
    pub(crate) text: String,
    pub(crate) more: u32,
}

/// Why no rule is known.
pub(crate) type Unknown = String;

impl Rule {
    /// The rule of the processor whose files are beside the tokenizer.
    pub(crate) fn of(tokenizer: &Tokenizer) -> Result<Result<Self, Unknown>, TokensError> {
        if tokenizer.is_built_in() {
            return Ok(Err("the built-in tokenizer is no model's".to_owned()));
        }
        let files = Files::beside(tokenizer)?;
        let rule = Self::by_files(&files, |name| tokenizer.named_token(name).map(str::to_owned));
        Ok(rule.and_then(|rule| rule.checked(tokenizer)))
    }

    fn by_files(files: &Files, named: impl Fn(&str) -> Option<String>) -> Result<Self, Unknown> {
        let Some(class) = files.class() else {
            return Err(
                "no processor_config.json, preprocessor_config.json or config.json beside the \
                        tokenizer names a processor"
                    .to_owned(),
            );
        };
        let token = |name: &str, usual: &str| named(name).unwrap_or_else(|| usual.to_owned());
        let missing = |what: &str| format!("{class} without {what}");
        let plain = |token: String, count| Self {
            placeholder: token.clone(),
            before: String::new(),
            token,
            after: String::new(),
            count,
        };
        match class.as_str() {
            "Qwen2VLProcessor" | "Qwen2_5_VLProcessor" | "Qwen3VLProcessor" => {
                let resize = Resize::of(files).ok_or_else(|| missing("a resize"))?;
                Ok(plain(token("image_token", "<|image_pad|>"), Count::Resized(resize)))
            }
            "LlavaProcessor" => {
                let cells =
                    Grid::of(files).ok_or_else(|| missing("a fixed size or a patch_size"))?;
                let cells = cells.tokens().ok_or_else(|| missing("a sensible patch_size"))?;
                Ok(plain(files.token(&named, "image_token", "<image>"), Count::Fixed(cells)))
            }
            "LlavaNextProcessor" => {
                let next = LlavaNext::of(files);
                let next = next.ok_or_else(|| missing("a fixed size or image_grid_pinpoints"))?;
                Ok(plain(files.token(&named, "image_token", "<image>"), Count::Next(next)))
            }
            "Gemma3Processor" => {
                if files.image_flag("do_pan_and_scan") == Some(true) {
                    return Err("Gemma3Processor with do_pan_and_scan".to_owned());
                }
                let placeholder = token("boi_token", "<start_of_image>");
                Ok(Self {
                    before: format!("\n\n{placeholder}"),
                    token: token("image_token", "<image_soft_token>"),
                    after: format!("{}\n\n", token("eoi_token", "<end_of_image>")),
                    placeholder,
                    count: Count::Fixed(files.number("image_seq_length").unwrap_or(256)),
                })
            }
            "InternVLProcessor" => {
                let tiles = Tiles::of(files).ok_or_else(|| missing("a size of tiles"))?;
                let each = files.number("image_seq_length").unwrap_or(256);
                let placeholder = token("context_image_token", "<IMG_CONTEXT>");
                Ok(Self {
                    before: token("start_image_token", "<img>"),
                    after: token("end_image_token", "</img>"),
                    token: placeholder.clone(),
                    placeholder,
                    count: Count::Tiled { tiles, each },
                })
            }
            "PixtralProcessor" => {
                let rows = Pixtral::of(files).ok_or_else(|| missing("a longest_edge"))?;
                Ok(plain(
                    files.text("image_token").unwrap_or("[IMG]").to_owned(),
                    Count::Rows(rows),
                ))
            }
            other => Err(format!("the rule of {other} is not known")),
        }
    }

    /// The rule, if its token is one token: else counting its repetitions would be wrong.
    fn checked(self, tokenizer: &Tokenizer) -> Result<Self, Unknown> {
        let twice = self.token.repeat(2);
        let count = tokenizer.count(&twice, false);
        match (tokenizer.token_id(&self.token), count) {
            (Some(_), Ok(2)) => Ok(self),
            _ => Err(format!("{} is not one token of the tokenizer", self.token)),
        }
    }

    /// The id of the placeholder.
    pub(crate) fn placeholder_id(&self, tokenizer: &Tokenizer) -> Option<u32> {
        tokenizer.token_id(&self.placeholder)
    }

    /// What a picture of that size is written as. Some sizes a processor refuses; then it says why.
    pub(crate) fn expand(&self, size: Size) -> Result<Expansion, String> {
        let count = match &self.count {
            Count::Fixed(count) => *count,
            Count::Resized(resize) => resize.tokens(size)?,
            Count::Next(next) => next.tokens(size).ok_or("no grid fits it")?,
            Count::Tiled { tiles, each } => each.saturating_mul(tiles.of_size(size)),
            Count::Rows(rows) => rows.tokens(size),
        };
        let Self { before, token, after, .. } = self;
        Ok(match count.checked_sub(1) {
            Some(more) => Expansion { text: format!("{before}{token}{after}"), more },
            None => Expansion { text: format!("{before}{after}"), more: 0 },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rule(files: serde_json::Value) -> Result<Rule, Unknown> {
        Rule::by_files(&Files::of_test(files), |_| None)
    }

    fn tokens(rule: &Rule, width: u32, height: u32) -> u32 {
        rule.expand(Size { width, height }).unwrap().more + 1
    }

    #[test]
    fn the_rule_is_found_by_the_class_or_the_kind_of_model() {
        for files in [
            json!({"processor": {"processor_class": "Qwen2_5_VLProcessor"}}),
            json!({"preprocessor": {"processor_class": "Qwen2_5_VLProcessor"}}),
            json!({"tokenizer": {"processor_class": "Qwen2_5_VLProcessor"}}),
            json!({"config": {"model_type": "qwen2_5_vl"}}),
        ] {
            let rule = rule(files.clone()).unwrap();
            assert_eq!(rule.placeholder, "<|image_pad|>", "{files}");
            assert_eq!(tokens(&rule, 1280, 720), 1196, "the defaults of Qwen2-VL");
        }
        let unknown = rule(json!({"processor": {"processor_class": "SomeProcessor"}}));
        assert_eq!(unknown, Err("the rule of SomeProcessor is not known".to_owned()));
        assert!(rule(json!({"config": {"model_type": "llama"}})).is_err());
        assert!(rule(json!({})).unwrap_err().contains("names a processor"));
    }

    #[test]
    fn what_stands_around_the_tokens_is_kept() {
        let gemma = rule(json!({"config": {"model_type": "gemma3"}})).unwrap();
        let size = Size { width: 9, height: 9 };
        let text = "\n\n<start_of_image><image_soft_token><end_of_image>\n\n".to_owned();
        assert_eq!(gemma.expand(size), Ok(Expansion { text, more: 255 }));
        let intern = json!({"config": {"model_type": "internvl"},
            "preprocessor": {"size": {"height": 448, "width": 448}}});
        let text = "<img><IMG_CONTEXT></img>".to_owned();
        let more = 256 - 1;
        assert_eq!(rule(intern).unwrap().expand(size), Ok(Expansion { text, more }));
        let pan =
            json!({"config": {"model_type": "gemma3"}, "preprocessor": {"do_pan_and_scan": true}});
        assert!(rule(pan).unwrap_err().contains("do_pan_and_scan"));
    }
}
