//! `sonnet`: lines of a text drawn at random after a few that all prompts share.
//!
//! `vllm bench` had this dataset in earlier releases; the one we compare with has it no more, so the
//! prompts are not its prompts.

use super::shared::{finish, need, need_path};
use super::{VllmDatasetOptions, VllmLoaded};
use crate::{DatasetError, corpus};
use serde::Serialize;
use serde_json::json;
use servebench_core::random::{Draws, PythonRandom};
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::Tokenizer;

/// How long prompts are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SonnetOptions {
    /// Most tokens of a prompt, chat template and all.
    pub input_len: u32,
    /// Output length.
    pub output_len: u32,
    /// About how many tokens all prompts begin with.
    pub prefix_len: u32,
}

impl Default for SonnetOptions {
    fn default() -> Self {
        Self { input_len: 550, output_len: 150, prefix_len: 200 }
    }
}

/// What a prompt begins with.
const TASK: &str = "Repeat as many of these lines as you can:\n";
/// How many prompts may be too long for each that is not.
const TRIES: usize = 100;

pub(super) fn load(
    own: &SonnetOptions,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<VllmLoaded, DatasetError> {
    let tokenizer = need(tokenizer, "sonnet")?;
    let path = need_path(options, "sonnet")?;
    let text = corpus::read(path)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let wrong = |flag, problem| Err(DatasetError::Option { flag, problem });
    let tokens: u64 = u64::from(tokenizer.count_batch(&lines, false)?.into_iter().sum::<u32>());
    if tokens == 0 {
        let (dataset, skipped) = (path.display().to_string(), "no text".to_owned());
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    let templated = |prompt: &str| -> Result<String, DatasetError> {
        if options.skip_chat_template {
            return Ok(prompt.to_owned());
        }
        let messages = [json!({"role": "user", "content": prompt})];
        let kwargs = &options.chat_template_kwargs;
        Ok(tokenizer.chat_template()?.render_with(&messages, true, kwargs)?)
    };
    let task = tokenizer.count(&templated(TASK)?, true)?;
    let in_lines = |len: u32| {
        let mean = tokens as f64 / lines.len() as f64;
        ((f64::from(len) - f64::from(task)) / mean).round_ties_even().max(0.0) as usize
    };
    if own.input_len <= task {
        let problem = format!("must be above {task}, the tokens of the task alone");
        return wrong("--sonnet-input-len", problem);
    }
    let shared = in_lines(own.prefix_len).min(lines.len());
    let Some(drawn) = in_lines(own.input_len).checked_sub(shared) else {
        return wrong("--sonnet-prefix-len", "must be below --sonnet-input-len".to_owned());
    };
    let prefix = lines[..shared].concat();
    draws.python = PythonRandom::new(options.seed);
    let wanted = options.num_prompts.unwrap_or(lines.len());
    let mut samples = Vec::with_capacity(wanted);
    let mut tries = 0;
    while samples.len() < wanted {
        if tries >= TRIES * (samples.len() + 1) {
            let problem = format!(
                "leaves no room: {tries} draws of {drawn} lines gave {} prompts",
                samples.len()
            );
            return wrong("--sonnet-input-len", problem);
        }
        tries += 1;
        let chosen = draws.python.choices_index(lines.len() as u32, drawn);
        let own_lines: String = chosen.into_iter().map(|line| lines[line as usize]).collect();
        let text = templated(&format!("{TASK}{prefix}{own_lines}"))?;
        let prompt_len = tokenizer.count(&text, true)?;
        if prompt_len <= own.input_len {
            samples.push(Sample {
                prompt: Prompt::Text(text),
                prompt_len,
                counted: Counted::Tokenizer,
                output_len: own.output_len,
                ..Sample::default()
            });
        }
    }
    finish(samples, options, draws, (path, "0 prompts".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm::VllmDataset;

    fn load_of(own: &SonnetOptions, text: &str, n: usize) -> Result<VllmLoaded, DatasetError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let options = VllmDatasetOptions {
            path: Some(file.path().to_owned()),
            num_prompts: Some(n),
            skip_chat_template: true,
            ..VllmDatasetOptions::new(VllmDataset::Sonnet(own.clone()))
        };
        load(own, &options, Some(&Tokenizer::byte_level()), &mut Draws::new(3))
    }

    #[test]
    fn prompts_share_lines_and_fit() {
        let lines: Vec<String> = (10..60).map(|line| format!("this is line {line}\n")).collect();
        let text = lines.concat();
        let own = SonnetOptions { input_len: 160, output_len: 9, prefix_len: 80 };
        let loaded = load_of(&own, &text, 5).unwrap();
        assert_eq!(loaded.samples.len(), 5);
        let prefix = format!("{TASK}this is line 10\nthis is line 11\n");
        for sample in &loaded.samples {
            let Prompt::Text(text) = &sample.prompt else { panic!("no text") };
            assert!(text.starts_with(&prefix), "{text}");
            assert_eq!((text.len(), sample.output_len), (sample.prompt_len as usize, 9));
            assert!((140..=160).contains(&sample.prompt_len), "{}", sample.prompt_len);
        }
        assert_ne!(loaded.samples[0].prompt, loaded.samples[1].prompt);
    }

    #[test]
    fn what_cannot_fit_is_an_error() {
        let own = SonnetOptions { input_len: 30, ..SonnetOptions::default() };
        assert!(load_of(&own, "a line\n", 1).unwrap_err().to_string().contains("must be above"));
        let own = SonnetOptions { input_len: 90, prefix_len: 200, output_len: 1 };
        let text = "x\n".repeat(300);
        assert!(load_of(&own, &text, 1).unwrap_err().to_string().contains("must be below"));
        assert!(matches!(
            load_of(&SonnetOptions::default(), "", 1),
            Err(DatasetError::Empty { .. })
        ));
    }
}
