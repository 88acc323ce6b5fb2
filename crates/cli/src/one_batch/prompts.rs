//! The prompts of one case, as token ids.

use super::plan::{Case, OneBatchPlan, Source};
use crate::exit::OrCode;
use crate::{Code, Failure};
use serde_json::json;
use servebench_core::random::Draws;
use servebench_core::{Picture, Prompt, Sample};
use servebench_datasets::{DatasetName, DatasetOptions, SharedPrefixOptions, load};
use servebench_tokens::{Hub, Tokenizer};
use std::path::{Path, PathBuf};

/// The prompts of a batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Prompts {
    pub(super) ids: Vec<Vec<u32>>,
    /// The pictures of each; none for no prompt at all.
    pub(super) pictures: Vec<Vec<Picture>>,
    /// Tokens of each, as reported: the mean, rounded down, where they differ.
    pub(super) input_len: u32,
    /// Output tokens to ask for.
    pub(super) output_len: u32,
    /// Prompt tokens of the whole batch.
    pub(super) input_tokens: u64,
    /// The same as upstream reckons it: from the mean, unless prompts are recorded ones.
    pub(super) upstream_input_tokens: u64,
}

/// What makes prompts.
pub(super) struct Maker<'a> {
    pub(super) plan: &'a OneBatchPlan,
    pub(super) tokenizer: &'a Tokenizer,
    pub(super) hub: &'a Hub,
    pub(super) cache: Option<PathBuf>,
}

impl Maker<'_> {
    /// The prompts of `case`; `list` are the lengths within the batch, if they differ.
    pub(super) fn make(
        &self,
        case: Case,
        list: &[u32],
        draws: &mut Draws,
    ) -> Result<Prompts, Failure> {
        let rows = case.batch_size as usize;
        let (mut pictures, mut seen) = (Vec::new(), 0);
        let (mut ids, output_len) = match &self.plan.source {
            Source::File(path) => (vec![self.file(path)?; rows], case.output_len),
            Source::Dataset { name, path } => {
                let options = self.options(*name, path.as_ref(), case);
                let loaded = load(&options, self.tokenizer, self.hub, draws).or_code(Code::Data)?;
                let mut ids = self.ids(&loaded.samples, rows, *name)?;
                if *name == DatasetName::LongBench {
                    for ids in &mut ids {
                        ids.truncate(case.input_len as usize);
                    }
                }
                for (sample, ids) in loaded.samples.iter().zip(&ids) {
                    let Some(of_prompt) = &sample.pictures else { continue };
                    pictures.push(of_prompt.list.clone());
                    if of_prompt.tokens.is_some() {
                        // To the model they are more than their places in the ids.
                        seen += u64::from(sample.prompt_len).saturating_sub(ids.len() as u64);
                    }
                }
                let shared = *name == DatasetName::SharedPrefix;
                (ids, if shared { self.plan.gsp_output_len } else { case.output_len })
            }
        };
        if !list.is_empty() {
            for (row, &length) in ids.iter_mut().zip(list.iter().cycle()) {
                *row = row.iter().copied().cycle().take(length as usize).collect();
            }
        }
        let total: u64 = ids.iter().map(|row| row.len() as u64).sum::<u64>() + seen;
        let asked = list.is_empty()
            && matches!(&self.plan.source, Source::Dataset { name, .. } if name.is_random());
        let mean = u32::try_from(total / rows as u64).unwrap_or(u32::MAX);
        let input_len = if asked { case.input_len } else { mean };
        let upstream_input_tokens = if self.plan.is_replay() {
            total
        } else {
            u64::from(case.batch_size) * u64::from(input_len)
        };
        Ok(Prompts {
            ids,
            pictures,
            input_len,
            output_len,
            input_tokens: total,
            upstream_input_tokens,
        })
    }

    fn options(&self, name: DatasetName, path: Option<&PathBuf>, case: Case) -> DatasetOptions {
        let plan = self.plan;
        let groups = plan.gsp_num_groups.min(case.batch_size).max(1);
        let shape = SharedPrefixOptions {
            groups,
            prompts_per_group: case.batch_size.div_ceil(groups),
            system_prompt_len: plan.gsp_system_prompt_len,
            question_len: plan.gsp_question_len,
            output_len: plan.gsp_output_len,
            range_ratio: 1.0,
            cache: self.cache.clone(),
            ..SharedPrefixOptions::default()
        };
        let shared = name == DatasetName::SharedPrefix;
        DatasetOptions {
            name,
            path: path.cloned(),
            num_prompts: if shared { shape.prompts() } else { case.batch_size as usize },
            random_input_len: case.input_len,
            random_output_len: case.output_len,
            random_range_ratio: 1.0,
            tokenize_prompt: name.is_random(),
            apply_chat_template: plan.chat_template,
            shortest_prompt: (name == DatasetName::LongBench).then_some(case.input_len),
            shared_prefix: shared.then_some(shape),
            image: name.has_pictures().then(|| plan.image.clone()),
            ..DatasetOptions::default()
        }
    }

    /// The ids of the first `rows` samples.
    fn ids(
        &self,
        samples: &[Sample],
        rows: usize,
        name: DatasetName,
    ) -> Result<Vec<Vec<u32>>, Failure> {
        if samples.len() < rows {
            let (found, name) = (samples.len(), name.name());
            let error = anyhow::anyhow!("{name} has {found} usable prompts for a batch of {rows}");
            return Err(Failure::new(Code::Data, error).hint("give a smaller --batch-size"));
        }
        let ids = |sample: &Sample| match &sample.prompt {
            Prompt::Ids(ids) => Ok(ids.clone()),
            Prompt::Text(text) => self.tokenizer.encode(text, true).or_code(Code::Data),
            _ => Err(Failure::new(Code::Bug, anyhow::anyhow!("a prompt of messages"))),
        };
        samples.iter().take(rows).map(ids).collect()
    }

    /// The text of a file, or a chat that consists of it.
    fn file(&self, path: &Path) -> Result<Vec<u32>, Failure> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            let name = path.display();
            let error = anyhow::Error::new(error).context(format!("--fixed-prompt-file {name}"));
            Failure::new(Code::Data, error)
        })?;
        let ids = if self.plan.chat_template {
            let template = self.tokenizer.chat_template().or_code(Code::Data)?;
            let messages = [json!({"role": "user", "content": text})];
            let text = template.render(&messages, true).or_code(Code::Data)?;
            // The template has put the special tokens there.
            self.tokenizer.encode(&text, false)
        } else {
            self.tokenizer.encode(&text, true)
        };
        let ids = ids.or_code(Code::Data)?;
        if ids.is_empty() {
            let error = anyhow::anyhow!("--fixed-prompt-file {} is empty", path.display());
            return Err(Failure::new(Code::Data, error));
        }
        Ok(ids)
    }
}
