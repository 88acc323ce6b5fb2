//! `mmmu`: questions about pictures (MMMU, the mathematical part).

use crate::image::{ImageFormat, Prompts, Recoded, data_uri, recode};
use crate::skips::{At, Skip, Skips};
use crate::table::{Cell, HubDataset, Row, Table};
use crate::{DatasetError, DatasetOptions, Loaded};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rayon::prelude::*;
use servebench_core::random::Draws;
use servebench_core::{Picture, Sample};
use servebench_tokens::{Hub, Tokenizer};
use std::borrow::Cow;
use std::path::Path;

/// Where the questions are published.
const PUBLISHED: HubDataset<'_> =
    HubDataset { repo: "MMMU/MMMU", config: Some("Math"), split: "test" };
/// Where they are in a row.
const QUESTION: &str = "question";
/// Where a question's first picture is; it may have more, which are not sent.
const PICTURE: &str = "image_1";

/// Reads all rows, or as many as wanted, drawn as Python's `random.sample` draws them.
pub(crate) fn load(
    options: &DatasetOptions,
    tokenizer: &Tokenizer,
    hub: &Hub,
    draws: &mut Draws,
) -> Result<Loaded, DatasetError> {
    let path = options.path.as_deref().filter(|path| !path.as_os_str().is_empty());
    let table = match path {
        Some(path) => Table::open(path, PUBLISHED.config, PUBLISHED.split)?,
        None => Table::fetch(hub, PUBLISHED)?,
    };
    let (rows, wanted) = (table.len(), options.num_prompts);
    let numbers: Vec<usize> = match (u32::try_from(rows), u32::try_from(wanted)) {
        (Ok(rows), Ok(wanted)) if rows > wanted => {
            draws.python.sample_indices(rows, wanted).into_iter().map(|row| row as usize).collect()
        }
        _ => (0..rows.min(wanted)).collect(),
    };
    let rows = table.pick(&[QUESTION, PICTURE], &numbers)?;
    let folder = path.and_then(|path| if path.is_dir() { Some(path) } else { path.parent() });
    let messages = options.image.as_ref().is_some_and(|image| image.messages);
    let prompts = Prompts::new(tokenizer, messages)?;
    let output_len = options.random_output_len;
    let made: Vec<Result<Sample, Unused>> =
        rows.into_par_iter().map(|row| sample(&row, folder, &prompts, output_len)).collect();
    let (mut samples, mut skips) = (Vec::with_capacity(made.len()), Skips::default());
    for (made, number) in made.into_iter().zip(&numbers) {
        match made {
            Ok(sample) => samples.push(sample),
            Err(Unused::Row(skip)) => skips.note(skip, At::Row(number + 1)),
            Err(Unused::All(error)) => return Err(error),
        }
    }
    let name = table.name();
    if samples.is_empty() {
        let (dataset, skipped) = (name.to_owned(), skips.to_string());
        return Err(DatasetError::NoUsableRows { dataset, skipped });
    }
    let mut warnings = prompts.warnings(samples.len());
    if samples.len() < wanted {
        let found = samples.len();
        warnings.push(format!(
            "only {found} of {wanted} prompts: no more usable rows in {name}, {skips}"
        ));
    }
    Ok(Loaded { samples, warnings })
}

/// Why a row is not used.
enum Unused {
    /// It cannot be.
    Row(Skip),
    /// No row can.
    All(DatasetError),
}

fn sample(
    row: &Row,
    folder: Option<&Path>,
    prompts: &Prompts<'_>,
    output_len: u32,
) -> Result<Sample, Unused> {
    let cell = row.get(PICTURE).filter(|cell| **cell != Cell::Null);
    let cell = cell.ok_or(Unused::Row(Skip::NoPicture))?;
    let question = row.get(QUESTION).and_then(Cell::text).ok_or(Unused::Row(Skip::NoText))?;
    let file = file_of(cell, folder).ok_or(Unused::Row(Skip::BadPicture))?;
    let Recoded { size, file } = recode(&file).map_err(|_| Unused::Row(Skip::BadPicture))?;
    let uri = data_uri(ImageFormat::Png, &file);
    let picture = Picture { uri, width: size.width, height: size.height };
    let text = format!("Question: {question}\n\nAnswer: ");
    prompts.sample(text, vec![picture], output_len).map_err(|error| match error {
        DatasetError::NotForModel { .. } => Unused::Row(Skip::NotForModel),
        other => Unused::All(other),
    })
}

/// The bytes of a picture: as they are, or in base64, or in a file that is named. The hub's files have
/// bytes beside the name of the file they came from.
fn file_of<'a>(cell: &'a Cell, folder: Option<&Path>) -> Option<Cow<'a, [u8]>> {
    match cell {
        Cell::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
        Cell::Text(text) => {
            let encoded = match text.strip_prefix("data:") {
                Some(uri) => uri.split_once(";base64,")?.1,
                None => text,
            };
            if let Ok(bytes) = STANDARD.decode(encoded) {
                return Some(Cow::Owned(bytes));
            }
            std::fs::read(folder?.join(text)).ok().map(Cow::Owned)
        }
        Cell::Struct(_) => {
            let part = |name| cell.field(name).filter(|cell| **cell != Cell::Null);
            file_of(part("bytes").or_else(|| part("path"))?, folder)
        }
        _ => None,
    }
}

/// A picture as a row of JSON may hold it, made fit to be sent.
pub(crate) fn fuzzed(bytes: &[u8]) {
    if let Ok(Recoded { size, file }) = recode(bytes) {
        assert!(size.pixels() > 0, "no picture");
        let again = recode(&file).map(|again| again.size);
        assert_eq!(again, Ok(size), "what is sent cannot be read");
    }
    if let Ok(cell) = serde_json::from_slice::<Cell>(bytes) {
        let _file = file_of(&cell, None);
    }
}
