//! From rows to what is asked.

use super::HfOptions;
use crate::DatasetError;
use crate::table::{Cell, Row};
use crate::vllm::media::{Recording, image_at, image_of, video_at};
use serde_json::Value;
use std::path::Path;

/// What a row gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Made {
    /// What goes before the text, as a message of the system's.
    pub(super) system: Option<String>,
    pub(super) text: String,
    /// The reply that the dataset has.
    pub(super) reply: Option<String>,
    /// Parts of the message beside the text.
    pub(super) media: Vec<Value>,
    /// The file of a recording that is beside the table.
    pub(super) beside: Option<String>,
    /// How long the recording plays, where that is known.
    pub(super) seconds: Option<f64>,
}

impl Made {
    /// With a recording.
    pub(super) fn spoken(recording: Recording) -> Self {
        let Recording { part, seconds } = recording;
        Self { media: vec![part], seconds, ..Self::default() }
    }
}

/// What tells a model to transcribe English; nothing where the model is not known by its name.
pub(super) fn transcribe(tokenizer: &str) -> &'static str {
    if tokenizer.contains("openai") {
        "<|startoftranscript|><|en|><|transcribe|><|notimestamps|>"
    } else if tokenizer.to_lowercase().contains("cohere") {
        "<|startofcontext|><|startoftranscript|><|emo:undefined|><|en|><|en|><|pnc|><|noitn|>\
         <|notimestamp|><|nodiarize|>"
    } else {
        ""
    }
}

pub(super) fn said(text: impl Into<String>) -> Made {
    Made { text: text.into(), ..Made::default() }
}

/// The text that stands in a column at a place: `0.content` is `content` of its first value.
pub(super) fn dig<'a>(row: &'a Row, column: &str, place: &str) -> Result<&'a str, DatasetError> {
    let text = walk(row.need(column)?, place).and_then(Cell::text);
    text.ok_or_else(|| row.bad(format!("`{column}` has no text at {place}")))
}

fn walk<'a>(cell: &'a Cell, place: &str) -> Option<&'a Cell> {
    place.split('.').try_fold(cell, |cell, step| match step.parse::<usize>() {
        Ok(index) => cell.list()?.get(index),
        Err(_) => cell.field(step),
    })
}

/// An image by its bytes, in a struct as the hub has it, or by its address.
pub(super) fn image(row: &Row, cell: &Cell) -> Result<Value, DatasetError> {
    let bytes = cell.bytes().or_else(|| cell.field("bytes")?.bytes());
    let address = cell.text().or_else(|| cell.field("path")?.text());
    match (bytes, address) {
        (Some(bytes), _) => image_of(bytes).map_err(|problem| row.bad(problem)),
        (None, Some(address)) => Ok(image_at(address)),
        (None, None) => Err(row.bad("there is no image in it")),
    }
}

/// A recording by its bytes, in a struct as the hub has it, or by the path of its file.
pub(super) fn recording(row: &Row, cell: &Cell) -> Result<Recording, DatasetError> {
    if let Some(bytes) = cell.bytes().or_else(|| cell.field("bytes")?.bytes()) {
        return Recording::of(bytes).map_err(|problem| row.bad(problem));
    }
    let path = cell.text().or_else(|| cell.field("path")?.text());
    let path = path.ok_or_else(|| row.bad("there is no recording in it"))?;
    Recording::read(path).map_err(|problem| row.bad(problem))
}

/// A question and one image.
pub(super) fn pictured(
    row: &Row,
    text_column: &str,
    text_place: &str,
    column: &str,
    place: &str,
) -> Result<Option<Made>, DatasetError> {
    let text = dig(row, text_column, text_place)?.to_owned();
    let cell = walk(row.need(column)?, place);
    let cell = cell.ok_or_else(|| row.bad(format!("`{column}` has no image")))?;
    Ok(Some(Made { text, media: vec![image(row, cell)?], ..Made::default() }))
}

/// A question, its choices and a video, which is in the copy of the dataset where there is one.
pub(super) fn filmed(row: &Row, path: &Path) -> Result<Option<Made>, DatasetError> {
    const ROOT: &str = "https://huggingface.co/datasets/yale-nlp/MMVU/resolve/main";
    let mut text = row.text("question")?.to_owned();
    let Cell::Struct(choices) = row.need("choices")? else {
        return Err(row.bad("`choices` are not named"));
    };
    for (name, choice) in choices {
        // A choice that is not there reads `None` in the Python tool's prompts.
        text.extend([" ", name.as_str(), ".", choice.text().unwrap_or("None")]);
    }
    let video = row.text("video")?;
    let video = match (video.strip_prefix(ROOT), path.is_dir()) {
        (Some(inside), true) => format!("{}{inside}", path.display()),
        _ => video.to_owned(),
    };
    Ok(Some(Made { text, media: vec![video_at(&video)], ..Made::default() }))
}

/// The first two turns of a conversation, with its image if it has one.
pub(super) fn talked(row: &Row, with_image: bool) -> Result<Option<Made>, DatasetError> {
    let turns = row.need("conversations")?;
    if turns.list().is_none_or(|turns| turns.len() < 2) {
        return Ok(None);
    }
    let value = |place| dig(row, "conversations", place).map(str::to_owned);
    let (text, reply) = (value("0.value")?, Some(value("1.value")?));
    let media = match row.get("image") {
        Some(cell) if with_image && *cell != Cell::Null => vec![image(row, cell)?],
        _ => Vec::new(),
    };
    Ok(Some(Made { text, reply, media, ..Made::default() }))
}

/// Edits that were made and code in which the next one is to be found.
pub(super) fn edited(row: &Row) -> Result<Option<Made>, DatasetError> {
    const START: &str = "<|editable_region_start|>";
    let (events, code, reply) = (row.text("events")?, row.text("input")?, row.text("output")?);
    let region = reply.find(START).map_or(reply, |start| &reply[start..]);
    let text = format!(
        "Complete code: read which edits the user made, then rewrite the excerpt with the edit that \
         comes next, where the cursor stands.\n\nEdits:\n{events}\n\nExcerpt:\n{code}\n\nRewritten:\n"
    );
    Ok(Some(Made { text, reply: Some(region.to_owned()), ..Made::default() }))
}

/// A change of a file, if its distance is one of those wanted.
pub(super) fn distant(row: &Row, own: &HfOptions) -> Result<Option<Made>, DatasetError> {
    let distance = match row.need("norm_distance")? {
        Cell::Float(distance) => *distance,
        Cell::Int(distance) => *distance as f64,
        _ => return Err(row.bad("`norm_distance` is no number")),
    };
    if !(own.distance.0..=own.distance.1).contains(&distance) {
        return Ok(None);
    }
    let (code, change) = (row.text("code")?, row.text("change_request")?);
    Ok(Some(said(format!(
        "Apply a change to a file and write the whole new file.\n\nThe file:\n```python\n{code}\n```\n\n\
         The change:\n{change}\n\nThe new file:\n"
    ))))
}
