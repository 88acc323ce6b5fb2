//! What `generated-shared-prefix` is made of.

use crate::DatasetError;
use serde::Serialize;
use std::path::PathBuf;

/// Sizes and shape of `generated-shared-prefix`. The defaults are the Python tool's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SharedPrefixOptions {
    /// Groups, each with a system prompt of its own.
    pub groups: u32,
    /// Prompts of each group; with [`zipf_alpha`](Self::zipf_alpha) the mean over the groups.
    pub prompts_per_group: u32,
    /// Longest system prompt, in tokens.
    pub system_prompt_len: u32,
    /// Longest question, in tokens.
    pub question_len: u32,
    /// Longest output, in tokens.
    pub output_len: u32,
    /// Shortest length as a share of the longest, 0 to 1; lengths are uniform between the two.
    pub range_ratio: f64,
    /// Draws each prompt's group with probability proportional to `rank^-alpha`, the first group
    /// most often. Without it every group has the same number of prompts.
    pub zipf_alpha: Option<f64>,
    /// Seed of those draws, which have a generator of their own.
    pub zipf_seed: u32,
    /// Questions of each conversation; 1 makes plain prompts.
    pub turns: u32,
    /// Group after group instead of shuffled.
    pub ordered: bool,
    /// Take prompts to have the length asked for instead of counting their tokens.
    pub fast_prepare: bool,
    /// Give every prompt its group's [`routing_key`](servebench_core::Sample::routing_key).
    pub routing_key: bool,
    /// Folder in which large sets are kept for the next run.
    #[serde(skip)]
    pub cache: Option<PathBuf>,
}

impl Default for SharedPrefixOptions {
    fn default() -> Self {
        Self {
            groups: 64,
            prompts_per_group: 16,
            system_prompt_len: 2048,
            question_len: 128,
            output_len: 256,
            range_ratio: 1.0,
            zipf_alpha: None,
            zipf_seed: 42,
            turns: 1,
            ordered: false,
            fast_prepare: false,
            routing_key: false,
            cache: None,
        }
    }
}

impl SharedPrefixOptions {
    /// Number of prompts or conversations: groups times prompts of each.
    pub fn prompts(&self) -> usize {
        (self.groups as usize).saturating_mul(self.prompts_per_group as usize)
    }

    pub(crate) fn check(&self, tokenize_prompt: bool) -> Result<(), DatasetError> {
        let wrong = |flag, problem: String| Err(DatasetError::Option { flag, problem });
        for (flag, count) in [
            ("--gsp-num-groups", self.groups),
            ("--gsp-prompts-per-group", self.prompts_per_group),
            ("--gsp-num-turns", self.turns),
        ] {
            if count == 0 {
                return wrong(flag, "must be at least 1".to_owned());
            }
        }
        if !(0.0..=1.0).contains(&self.range_ratio) {
            let ratio = self.range_ratio;
            return wrong("--gsp-range-ratio", format!("must be between 0 and 1, not {ratio}"));
        }
        if let Some(alpha) = self.zipf_alpha
            && !(alpha.is_finite() && alpha > 0.0)
        {
            return wrong("--gsp-zipf-alpha", format!("must be finite and above 0, not {alpha}"));
        }
        if self.question_len == 0 && (self.system_prompt_len == 0 || self.turns > 1) {
            return wrong("--gsp-question-len", "must be at least 1 here".to_owned());
        }
        if tokenize_prompt && self.turns > 1 {
            return wrong("--tokenize-prompt", "requires --gsp-num-turns=1".to_owned());
        }
        let questions = self.prompts().saturating_mul(self.turns as usize);
        if u32::try_from(questions).is_err() {
            return wrong("--gsp-num-groups", format!("{questions} questions are too many"));
        }
        Ok(())
    }
}
