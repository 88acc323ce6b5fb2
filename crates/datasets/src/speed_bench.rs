//! `speed-bench`: prompts of SPEED-Bench, whose categories are of more or less predictable text.

use crate::mooncake::doubled_bos;
use crate::skips::{At, Skip, Skips};
use crate::table::{Cell, Row, Table};
use crate::{DatasetError, DatasetOptions, Loaded};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::json;
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{ChatTemplate, Tokenizer};
use std::path::Path;

/// Which rows are taken, and how much is asked for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpeedBenchOptions {
    /// Only rows of this category; all where there is none.
    pub category: Option<SpeedBenchCategory>,
    /// Output tokens of every request.
    pub output_len: u32,
}

impl Default for SpeedBenchOptions {
    fn default() -> Self {
        Self { category: None, output_len: 512 }
    }
}

/// How predictable the text of a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(into = "&'static str")]
#[non_exhaustive]
pub enum SpeedBenchCategory {
    /// Predictable: code, tables.
    LowEntropy,
    /// Of both kinds.
    Mixed,
    /// Hard to predict: stories, role play.
    HighEntropy,
}

impl SpeedBenchCategory {
    /// The name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LowEntropy => "low_entropy",
            Self::Mixed => "mixed",
            Self::HighEntropy => "high_entropy",
        }
    }
}

impl From<SpeedBenchCategory> for &'static str {
    fn from(category: SpeedBenchCategory) -> Self {
        category.name()
    }
}

/// Draws rows without repeats, or repeats all of them until there are as many as wanted.
pub(crate) fn load(
    path: &Path,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    let table = Table::open(path, None, "test")?;
    let shape = options.speed_bench.clone().unwrap_or_default();
    let mut skips = Skips::default();
    let prompts = prompts(&table, shape.category, &mut skips)?;
    if prompts.is_empty() {
        let mut dataset = table.name().to_owned();
        if let Some(category) = shape.category {
            dataset = format!("category {} of {dataset}", category.name());
        }
        let skipped = skips.to_string();
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    let (found, wanted) = (prompts.len(), options.num_prompts);
    let mut warnings = Vec::new();
    let unusable = skips.count(Skip::NoTurns);
    if unusable > 0 {
        warnings.push(format!("{}: {skips}", table.name()));
    }
    if wanted > found {
        warnings.push(format!(
            "{wanted} prompts of {found} different ones, as in the Python tool: a server that caches \
             prefixes answers repeats faster"
        ));
    }
    let order = order(found, wanted, draws);
    let template = tokenizer.chat_template().ok();
    let make = |at: usize| make(&prompts[at], shape.output_len, template, tokenizer);
    let made = order.into_par_iter().map(make).collect::<Result<Vec<_>, DatasetError>>()?;
    let plain = made.iter().filter(|(_, templated)| !templated).count();
    let samples: Vec<Sample> = made.into_iter().map(|(sample, _)| sample).collect();
    if plain > 0 {
        warnings.push(format!(
            "{plain} of {wanted} prompts are sent as they are in the file: the tokenizer has no chat \
             template that takes them"
        ));
    }
    warnings.extend(doubled_bos(&samples, tokenizer));
    Ok(Loaded { samples, warnings })
}

/// The first turn of every row that is taken.
pub(crate) fn prompts(
    table: &Table,
    category: Option<SpeedBenchCategory>,
    skips: &mut Skips,
) -> Result<Vec<String>, DatasetError> {
    let mut prompts = Vec::new();
    let columns: &[&str] = if category.is_some() { &["turns", "category"] } else { &["turns"] };
    for (number, row) in table.rows(columns).enumerate() {
        let (row, at) = (row?, At::Row(number + 1));
        let of_category = row.get("category").and_then(Cell::text);
        if category.is_some_and(|category| of_category != Some(category.name())) {
            skips.note(Skip::OtherCategory, at);
            continue;
        }
        match first_turn(row)? {
            Some(prompt) => prompts.push(prompt),
            None => skips.note(Skip::NoTurns, at),
        }
    }
    Ok(prompts)
}

/// The first turn, if there is any.
fn first_turn(mut row: Row) -> Result<Option<String>, DatasetError> {
    let turns = match row.take("turns") {
        None | Some(Cell::Null) => return Ok(None),
        Some(Cell::List(turns)) => turns,
        Some(other) => {
            return Err(row.bad(format!("`turns` is {}, not a list of texts", other.kind())));
        }
    };
    match turns.into_iter().next() {
        None => Ok(None),
        Some(Cell::Text(prompt)) => Ok(Some(prompt)),
        Some(other) => Err(row.bad(format!("the first of `turns` is {}, not text", other.kind()))),
    }
}

/// Which of `found` prompts are sent, in their order.
fn order(found: usize, wanted: usize, draws: &mut Draws) -> Vec<usize> {
    if let (Ok(n), Ok(k)) = (u32::try_from(found), u32::try_from(wanted))
        && k <= n
    {
        return draws.python.sample_indices(n, k).into_iter().map(|at| at as usize).collect();
    }
    let mut order: Vec<usize> = (0..found).cycle().take(wanted).collect();
    draws.python.shuffle(&mut order);
    order
}

/// A prompt as a chat template puts it, and whether one did: ids and back, as the Python tool does.
fn make(
    prompt: &str,
    output_len: u32,
    template: Option<&ChatTemplate>,
    tokenizer: &Tokenizer,
) -> Result<(Sample, bool), DatasetError> {
    let messages = [json!({"role": "user", "content": prompt})];
    let rendered = template.and_then(|template| template.render(&messages, true).ok());
    let (text, prompt_len) = match &rendered {
        Some(text) => {
            // The template has put the special tokens there.
            let ids = tokenizer.encode(text, false)?;
            (tokenizer.decode(&ids, false)?, ids.len() as u32)
        }
        None => (prompt.to_owned(), tokenizer.count(prompt, true)?),
    };
    let (prompt, counted) = (Prompt::Text(text), Counted::Tokenizer);
    let sample = Sample { prompt, prompt_len, counted, output_len, ..Sample::default() };
    Ok((sample, rendered.is_some()))
}
