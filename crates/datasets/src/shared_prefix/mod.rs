//! `generated-shared-prefix`: groups of random prompts that begin alike.

mod cache;
mod drawn;
mod options;

pub use options::SharedPrefixOptions;

use crate::{DatasetError, DatasetOptions, Loaded};
use drawn::{Drawn, Row};
use rayon::prelude::*;
use serde_json::json;
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Tokenizer, TokensError};

/// Between a system prompt and its question.
const SEPARATOR: &str = "\n\n";

/// Tokens from which on a set is kept: below, it is made as fast as it is read.
const KEPT_FROM: usize = 1 << 18;

/// Draws the set, then takes its texts from the cache or makes them.
pub(crate) fn load(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    let shape = options.shared_prefix.clone().unwrap_or_default();
    let vocabulary = tokenizer.vocabulary_ids();
    if vocabulary.is_empty() {
        let dataset = format!("the vocabulary of `{}`", tokenizer.name());
        return Err(DatasetError::NoUsableRows { dataset, skipped: "it is empty".to_owned() });
    }
    let drawn = Drawn::draw(&shape, &vocabulary, draws);
    let cache = shape
        .cache
        .as_deref()
        .filter(|_| !options.tokenize_prompt && !shape.fast_prepare && drawn.tokens() >= KEPT_FROM);
    let entry = cache.map(|folder| cache::Entry::new(folder, &drawn, &shape, tokenizer));
    if let Some(samples) = entry.as_ref().and_then(cache::Entry::read) {
        return Ok(Loaded { samples, warnings: Vec::new() });
    }
    let samples = make(&drawn, options.tokenize_prompt, &shape, tokenizer)?;
    let written = entry.map(|entry| entry.write(&samples)).transpose();
    let warnings = written.err().map(|error| format!("the data is not kept: {error}"));
    Ok(Loaded { samples, warnings: warnings.into_iter().collect() })
}

/// The samples of what was drawn, on all cores.
fn make(
    drawn: &Drawn,
    as_ids: bool,
    shape: &SharedPrefixOptions,
    tokenizer: &Tokenizer,
) -> Result<Vec<Sample>, TokensError> {
    let maker = Maker {
        systems: &drawn.systems,
        texts: if as_ids {
            Vec::new()
        } else {
            drawn
                .systems
                .par_iter()
                .map(|ids| tokenizer.decode(ids, false))
                .collect::<Result<_, _>>()?
        },
        shape,
        tokenizer,
    };
    let made =
        drawn.rows.par_iter().map(|row| if as_ids { Ok(maker.ids(row)) } else { maker.text(row) });
    made.collect()
}

struct Maker<'a> {
    systems: &'a [Vec<u32>],
    /// The system prompts as text, where text is sent.
    texts: Vec<String>,
    shape: &'a SharedPrefixOptions,
    tokenizer: &'a Tokenizer,
}

impl Maker<'_> {
    fn ids(&self, row: &Row) -> Sample {
        let questions = row.questions.iter().flatten();
        let ids: Vec<u32> = self.systems[row.group].iter().chain(questions).copied().collect();
        let prompt_len = ids.len() as u32;
        Sample { prompt: Prompt::Ids(ids), prompt_len, counted: Counted::Exact, ..self.rest(row) }
    }

    fn text(&self, row: &Row) -> Result<Sample, TokensError> {
        let question = |ids: &Vec<u32>| self.tokenizer.decode(ids, false);
        let mut questions = row.questions.iter().map(question).collect::<Result<Vec<_>, _>>()?;
        let first = [&self.texts[row.group], SEPARATOR, &questions[0]].concat();
        let (prompt_len, counted) = if self.shape.fast_prepare {
            let len = self.systems[row.group].len() + row.questions[0].len();
            (len as u32, Counted::Nominal)
        } else {
            (self.tokenizer.count(&first, true)?, Counted::Tokenizer)
        };
        let prompt = if questions.len() == 1 {
            Prompt::Text(first)
        } else {
            questions[0] = first;
            let turn = |text| vec![json!({"role": "user", "content": text})];
            Prompt::Turns(questions.into_iter().map(turn).collect())
        };
        Ok(Sample { prompt, prompt_len, counted, ..self.rest(row) })
    }

    fn rest(&self, row: &Row) -> Sample {
        let routing_key = self.shape.routing_key.then(|| row.group.to_string());
        Sample { output_len: row.output_len, routing_key, ..Sample::default() }
    }
}
