//! `burstgpt`: the lengths, and if asked for the times, of the BurstGPT trace.

use super::csv::records;
use super::shared::need;
use super::{VllmDatasetOptions, VllmLoaded};
use crate::lines::bad_line;
use crate::vllm::shared::need_path;
use crate::{DatasetError, corpus};
use rayon::prelude::*;
use servebench_core::random::NumpyLegacy;
use servebench_core::{Prompt, Sample, Stamp};
use servebench_tokens::{Tokenizer, TokensError};
use std::path::Path;
use std::time::Duration;

/// Most tokens of a prompt: a number beyond is no length.
const MOST_TOKENS: f64 = 16_777_216.0;

/// `timed`: the first rows in the order of time, each at its time after the first; else rows drawn at
/// random.
pub(super) fn load(
    timed: bool,
    options: &VllmDatasetOptions,
    tokenizer: Option<&Tokenizer>,
) -> Result<VllmLoaded, DatasetError> {
    let tokenizer = need(tokenizer, "burstgpt")?;
    let path = need_path(options, "burstgpt")?;
    let text = corpus::read(path)?;
    let rows = rows(&text, path, timed)?;
    if rows.is_empty() {
        return Err(DatasetError::NoUsableRows {
            dataset: path.display().to_string(),
            skipped: "0 rows of the model GPT-4 with response tokens".to_owned(),
        });
    }
    let mut loaded = VllmLoaded { request_ids: true, ..VllmLoaded::default() };
    let chosen = if timed {
        in_time(rows, options.num_prompts)
    } else {
        drawn(&rows, options.num_prompts.unwrap_or(rows.len()), options.seed)
    };
    if let Some(n) = options.num_prompts.filter(|n| *n > chosen.len()) {
        let (path, rows) = (path.display(), chosen.len());
        loaded
            .warnings
            .push(format!("{path} has {rows} usable rows, fewer than the {n} asked for"));
    }
    let vocabulary = tokenizer.vocab_size().max(1);
    let sample = |(index, row): (usize, &Row)| -> Result<Sample, TokensError> {
        let ids: Vec<u32> =
            (0..row.input_len).map(|at| (index as u32).wrapping_add(at) % vocabulary).collect();
        Ok(Sample {
            prompt: Prompt::Text(tokenizer.decode(&ids, false)?),
            prompt_len: row.input_len,
            output_len: row.output_len,
            timestamp: timed.then(|| {
                let after = (row.at - chosen[0].at).max(0.0);
                Stamp::from(Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX))
            }),
            ..Sample::default()
        })
    };
    loaded.samples =
        chosen.par_iter().enumerate().map(sample).collect::<Result<Vec<_>, TokensError>>()?;
    Ok(loaded)
}

/// A request of the trace that had a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// Seconds; 0 where times are not read.
    at: f64,
    input_len: u32,
    output_len: u32,
}

/// The rows of GPT-4 that had a reply. Lengths are the third and fourth column, whatever they are called.
pub(super) fn rows(text: &str, path: &Path, timed: bool) -> Result<Vec<Row>, DatasetError> {
    let mut records = records(text);
    let header = records.next().map(|(_, header)| header).unwrap_or_default();
    let column = |name: &str| {
        header.iter().position(|field| field == name).ok_or_else(|| DatasetError::NoColumn {
            path: path.to_owned(),
            column: name.to_owned(),
            found: header.iter().map(ToString::to_string).collect(),
        })
    };
    let (model, response) = (column("Model")?, column("Response tokens")?);
    let at = if timed { Some(column("Timestamp")?) } else { None };
    let mut rows = Vec::new();
    for (line, fields) in records {
        let number = |at: usize| fields.get(at).and_then(|field| field.trim().parse::<f64>().ok());
        let used = fields.get(model).is_some_and(|model| model == "GPT-4");
        if !used || number(response).is_none_or(|tokens| tokens.is_nan() || tokens <= 0.0) {
            continue;
        }
        let length = |at: usize| {
            let length = number(at).filter(|length| (0.0..=MOST_TOKENS).contains(length));
            length.map(|length| length as u32).ok_or_else(|| {
                bad_line(path, line, format!("its column {} is no number of tokens", at + 1))
            })
        };
        let at = match at.map(number) {
            None => 0.0,
            Some(Some(at)) if at.is_finite() => at,
            Some(_) => return Err(bad_line(path, line, "its `Timestamp` is no number".to_owned())),
        };
        rows.push(Row { at, input_len: length(2)?, output_len: length(3)? });
    }
    Ok(rows)
}

/// The first rows in the order of time.
fn in_time(mut rows: Vec<Row>, wanted: Option<usize>) -> Vec<Row> {
    rows.sort_by(|a, b| a.at.total_cmp(&b.at));
    rows.truncate(wanted.unwrap_or(usize::MAX));
    rows
}

/// Rows drawn as a data frame samples them: each once, or where there are too few, each any number of
/// times.
fn drawn(rows: &[Row], wanted: usize, seed: u32) -> Vec<Row> {
    let mut numpy = NumpyLegacy::new(seed);
    let count = rows.len() as u32;
    if wanted > rows.len() {
        let chosen = numpy.randint(0..=count - 1, wanted);
        return chosen.into_iter().map(|row| rows[row as usize]).collect();
    }
    let mut order = numpy.permutation(count);
    order.truncate(wanted);
    order.into_iter().map(|row| rows[row as usize]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HEADER: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n";

    fn read(body: &str, timed: bool) -> Result<Vec<Row>, DatasetError> {
        rows(&format!("{HEADER}{body}"), Path::new("burst.csv"), timed)
    }

    #[test]
    fn rows_of_gpt_4_with_replies_count() {
        let body = "5,ChatGPT,1,2,3,x\n7.5,GPT-4,10,20,30,x\n9,GPT-4,10,0,10,x\n,GPT-4,3,,3,x\n";
        let want = Row { at: 7.5, input_len: 10, output_len: 20 };
        assert_eq!(read(body, true).unwrap(), [want]);
        assert_eq!(read(body, false).unwrap(), [Row { at: 0.0, ..want }]);
    }

    #[test]
    fn a_bad_row_is_named() {
        let error = read("1,GPT-4,2,3,5,x\n2,GPT-4,many,3,5,x\n", false).unwrap_err();
        assert!(error.to_string().contains("line 3: its column 3"), "{error}");
        let error = read("soon,GPT-4,2,3,5,x\n", true).unwrap_err();
        assert!(error.to_string().contains("`Timestamp`"), "{error}");
        let error = rows("a,b\n1,2\n", Path::new("burst.csv"), false).unwrap_err();
        assert!(error.to_string().contains("no column `Model`, only a, b"), "{error}");
    }

    #[test]
    fn times_go_from_the_first() {
        let rows = read("9,GPT-4,1,1,2,x\n4,GPT-4,2,2,4,x\n5,GPT-4,3,3,6,x\n", true).unwrap();
        let lengths = |rows: &[Row]| rows.iter().map(|row| row.input_len).collect::<Vec<_>>();
        assert_eq!(lengths(&in_time(rows.clone(), Some(2))), [2, 3]);
        assert_eq!(lengths(&in_time(rows, None)), [2, 3, 1]);
    }

    proptest! {
        #[test]
        fn no_file_panics(body in "([0-9.,]{0,9}|GPT-4|\n|-|nan){0,20}", timed: bool) {
            drop(read(&body, timed));
        }
    }
}
