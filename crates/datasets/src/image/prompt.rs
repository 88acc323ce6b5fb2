//! Prompts with pictures: what is sent, and how long it is to the model.

use super::Size;
use super::vision::{Rule, Unknown};
use crate::DatasetError;
use rayon::prelude::*;
use serde_json::{Value, json};
use servebench_core::random::PythonRandom;
use servebench_core::{Counted, Picture, Pictures, Prompt, Sample};
use servebench_tokens::{ChatTemplate, Tokenizer, TokensError};

/// Stands for a picture while the chat template is rendered: a template that writes it out knows nothing
/// of pictures.
const MARK: &str = "data:image/png;base64,";
/// What the Python tool puts before a text where there is no template.
const TAG: &str = "<image>";
/// Side of the square that is a token to the simulated server.
const SIMULATED_CELL: u32 = 28;

/// Makes prompts for one model.
pub(crate) struct Prompts<'a> {
    tokenizer: &'a Tokenizer,
    template: Option<ChatTemplate>,
    rule: Result<Rule, Unknown>,
    /// Prompts are for a chat endpoint.
    messages: bool,
}

impl<'a> Prompts<'a> {
    pub(crate) fn new(tokenizer: &'a Tokenizer, messages: bool) -> Result<Self, DatasetError> {
        let template = match tokenizer.processor_template() {
            Ok(template) => Some(template),
            Err(TokensError::NoChatTemplate { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { tokenizer, template, rule: Rule::of(tokenizer)?, messages })
    }

    /// Random texts of so many tokens, of all that are neither special nor stand for a picture.
    pub(crate) fn texts(
        &self,
        lengths: &[u32],
        python: &mut PythonRandom,
    ) -> Result<Vec<String>, DatasetError> {
        let mut excluded = self.tokenizer.named_special_ids();
        excluded.extend(self.rule.iter().filter_map(|rule| rule.placeholder_id(self.tokenizer)));
        let mut ids = self.tokenizer.vocabulary_ids();
        ids.retain(|id| !excluded.contains(id));
        if ids.is_empty() {
            let dataset = format!("the vocabulary of `{}`", self.tokenizer.name());
            let skipped = "all tokens are special".to_owned();
            return Err(DatasetError::NoUsableRows { dataset, skipped });
        }
        let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let drawn: Vec<Vec<u32>> =
            lengths.iter().map(|&length| python.choices_index(count, length as usize)).collect();
        let decode = |places: Vec<u32>| {
            let ids: Vec<u32> = places.into_iter().map(|place| ids[place as usize]).collect();
            self.tokenizer.decode(&ids, false)
        };
        Ok(drawn.into_par_iter().map(decode).collect::<Result<_, _>>()?)
    }

    /// The sample of a text and the pictures before it.
    pub(crate) fn sample(
        &self,
        text: String,
        pictures: Vec<Picture>,
        output_len: u32,
    ) -> Result<Sample, DatasetError> {
        let (templated, text_len) = if self.tokenizer.is_built_in() {
            (text.clone(), self.tokenizer.count(&text, true)?)
        } else {
            (self.templated(&text, pictures.len()), self.text_len(&text)?)
        };
        let tokens = self.vision_tokens(&templated, &pictures, text_len)?;
        let prompt = Prompt::Text(if self.messages { text } else { templated });
        Ok(Sample {
            prompt,
            prompt_len: text_len.saturating_add(tokens.unwrap_or(0)),
            counted: Counted::Tokenizer,
            output_len,
            pictures: Some(Box::new(Pictures { list: pictures, tokens })),
            ..Sample::default()
        })
    }

    /// What the user should know, of so many rows.
    pub(crate) fn warnings(&self, rows: usize) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.tokenizer.is_built_in() || rows == 0 {
            return warnings;
        }
        if !self.messages && self.by_template("", 1).is_none() {
            warnings.push(format!(
                "`{}` has no chat template that takes pictures: {TAG} is put before each text",
                self.tokenizer.name()
            ));
        }
        if let Err(reason) = &self.rule {
            warnings.push(format!(
                "the tokens that pictures are to the model are not known, and prompt lengths are those \
                 of the text alone: {reason}"
            ));
        }
        warnings
    }

    /// The text and its pictures as the model gets them, a placeholder for each picture.
    fn templated(&self, text: &str, pictures: usize) -> String {
        self.by_template(text, pictures).unwrap_or_else(|| format!("{TAG}{text}"))
    }

    fn by_template(&self, text: &str, pictures: usize) -> Option<String> {
        let picture = json!({"type": "image", "image": {"url": MARK}});
        let mut parts = vec![picture; pictures];
        parts.push(json!({"type": "text", "text": text}));
        self.render(&parts.into()).filter(|rendered| !rendered.contains(MARK))
    }

    fn render(&self, content: &Value) -> Option<String> {
        let message = json!({"role": "user", "content": content});
        self.template.as_ref()?.render(&[message], true).ok()
    }

    /// Tokens of the text in the chat template.
    fn text_len(&self, text: &str) -> Result<u32, TokensError> {
        // Some templates drop a content that is no list of parts.
        let blank = |c: char| c.is_whitespace() || c.is_control();
        let holds = |rendered: &String| rendered.contains(text.trim_matches(blank));
        let rendered =
            self.render(&text.into()).filter(holds).or_else(|| self.by_template(text, 0));
        self.tokenizer.count(rendered.as_deref().unwrap_or(text), true)
    }

    /// Tokens of the prompt above those of its text.
    fn vision_tokens(
        &self,
        templated: &str,
        pictures: &[Picture],
        text_len: u32,
    ) -> Result<Option<u32>, DatasetError> {
        let size = |picture: &Picture| Size { width: picture.width, height: picture.height };
        if self.tokenizer.is_built_in() {
            let cells = |side: u32| side.div_ceil(SIMULATED_CELL);
            let tokens = pictures.iter().map(size);
            return Ok(Some(tokens.map(|size| cells(size.width) * cells(size.height)).sum()));
        }
        let Ok(rule) = &self.rule else { return Ok(None) };
        let mut pieces = templated.split(rule.placeholder.as_str());
        let mut expanded = pieces.next().unwrap_or_default().to_owned();
        let (mut pictures, mut more) = (pictures.iter(), 0_u32);
        for piece in pieces {
            match pictures.next().map(size) {
                // A placeholder that the text itself brought along.
                None => expanded.push_str(&rule.placeholder),
                Some(size) => {
                    let one = rule.expand(size).map_err(|problem| DatasetError::NotForModel {
                        width: size.width,
                        height: size.height,
                        problem,
                    })?;
                    expanded.push_str(&one.text);
                    more = more.saturating_add(one.more);
                }
            }
            expanded.push_str(piece);
        }
        let all = self.tokenizer.count(&expanded, true)?.saturating_add(more);
        Ok(Some(all.saturating_sub(text_len)))
    }
}
