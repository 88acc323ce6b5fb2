//! `longbench_v2`: questions of several choices about long documents.

use crate::skips::{At, Skip, Skips};
use crate::table::{Cell, HubDataset, Row, Table};
use crate::{DatasetError, DatasetOptions, Loaded};
use rayon::prelude::*;
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_tokens::{Hub, Tokenizer};

/// Where the dataset is on the hub.
const HUB: HubDataset<'_> = HubDataset { repo: "THUDM/LongBench-v2", config: None, split: "train" };
/// What a row asks for where nothing is said, in tokens: the letter and a few words.
const OUTPUT_LEN: u32 = 10;
/// The columns that a prompt is made of.
const COLUMNS: [&str; 6] = ["context", "question", "choice_A", "choice_B", "choice_C", "choice_D"];
/// Fewest rows that are read at once after the first of them were dropped.
const MIN_BATCH: usize = 32;

/// Takes rows in shuffled order until there are as many as wanted.
pub(crate) fn load(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    hub: &Hub,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    let given = options.path.as_deref().filter(|path| !path.as_os_str().is_empty());
    let table = match given {
        Some(path) => Table::open(path, None, HUB.split)?,
        None => Table::fetch(hub, HUB)?,
    };
    let mut skips = Skips::default();
    let samples = sample(&table, options, tokenizer, draws, &mut skips)?;
    let (found, asked, name) = (samples.len(), options.num_prompts, table.name());
    if found == 0 {
        let (dataset, skipped) = (name.to_owned(), skips.to_string());
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    let mut warnings = Vec::new();
    if found < asked {
        warnings.push(format!("only {found} of {asked} prompts: no more rows in {name}, {skips}"));
    }
    Ok(Loaded { samples, warnings })
}

pub(crate) fn sample(
    table: &Table,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    draws: &mut Draws,
    skips: &mut Skips,
) -> Result<Vec<Sample>, DatasetError> {
    let mut order: Vec<usize> = (0..table.len()).collect();
    draws.python.shuffle(&mut order);
    let mut samples = Vec::new();
    let mut rest = order.as_slice();
    let mut batch = options.num_prompts;
    while samples.len() < options.num_prompts && !rest.is_empty() {
        let (numbers, later) = rest.split_at(batch.min(rest.len()));
        rest = later;
        let rows = table.pick(&COLUMNS, numbers)?;
        let made: Vec<_> = rows.into_par_iter().map(|row| make(&row, options, tokenizer)).collect();
        for (outcome, number) in made.into_iter().zip(numbers) {
            if samples.len() == options.num_prompts {
                break;
            }
            match outcome? {
                Ok(sample) => samples.push(sample),
                Err(skip) => skips.note(skip, At::Row(number + 1)),
            }
        }
        // A file of Parquet is gone through once for each batch: fewer of them where many are dropped.
        batch = batch.max(MIN_BATCH) * 2;
    }
    Ok(samples)
}

fn make(
    row: &Row,
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
) -> Result<Result<Sample, Skip>, DatasetError> {
    let prompt = prompt(row)?;
    let prompt_len = tokenizer.count(&prompt, true)?;
    let output_len = options.sharegpt_output_len.unwrap_or(OUTPUT_LEN);
    if options.shortest_prompt.is_some_and(|shortest| prompt_len < shortest) {
        return Ok(Err(Skip::TooShort));
    }
    let limit = options.sharegpt_context_len.filter(|&limit| limit > 0);
    if limit.is_some_and(|limit| prompt_len.saturating_add(output_len) > limit) {
        return Ok(Err(Skip::TooLong));
    }
    let (prompt, counted) = (Prompt::Text(prompt), Counted::Tokenizer);
    Ok(Ok(Sample { prompt, prompt_len, counted, output_len, ..Sample::default() }))
}

/// The document, the question, the choices, and the beginning of the answer.
fn prompt(row: &Row) -> Result<String, DatasetError> {
    let mut texts = Vec::with_capacity(COLUMNS.len());
    for column in COLUMNS {
        let cell = row.need(column)?;
        let text = written(cell);
        texts
            .push(text.ok_or_else(|| row.bad(format!("`{column}` is {}, not text", cell.kind())))?);
    }
    let mut prompt = format!("{}\n\nQuestion: {}\n", texts[0], texts[1]);
    for (letter, choice) in ["A. ", "B. ", "C. ", "D. "].iter().zip(&texts[2..]) {
        prompt.extend([letter, choice.as_str(), "\n"]);
    }
    prompt.push_str("Answer:");
    Ok(prompt)
}

/// A plain value as Python writes it into a text.
fn written(cell: &Cell) -> Option<String> {
    Some(match cell {
        Cell::Text(text) => text.clone(),
        Cell::Null => "None".to_owned(),
        Cell::Bool(true) => "True".to_owned(),
        Cell::Bool(false) => "False".to_owned(),
        Cell::Int(number) => number.to_string(),
        Cell::Float(number) => format!("{number:?}"),
        _ => return None,
    })
}
