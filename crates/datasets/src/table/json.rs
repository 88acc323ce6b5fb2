//! Tables of JSON: an object a line, or one array of objects.
//!
//! A file is gone through once to find where its rows are; a row is read when it is asked for.

use super::Cell;
use super::index::{Span, index};
use super::row::{Place, Row};
use crate::DatasetError;
use crate::lines::bad_line;
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file of JSON rows.
#[derive(Debug)]
pub(super) struct JsonFile {
    path: Arc<Path>,
    spans: Vec<Span>,
}

impl JsonFile {
    pub(super) fn open(path: &Path) -> Result<Self, DatasetError> {
        let failed = |source| DatasetError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        let spans = index(BufReader::with_capacity(1 << 18, file)).map_err(failed)?;
        let bad = |(line, problem): (_, &str)| bad_line(path, line, problem.to_owned());
        Ok(Self { path: path.into(), spans: spans.map_err(bad)? })
    }

    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    pub(super) fn reader(&self, columns: Arc<[String]>) -> Result<JsonRows<'_>, DatasetError> {
        let file = File::open(&self.path).map_err(|source| self.unreadable(source))?;
        Ok(JsonRows { table: self, file, columns, text: Vec::new() })
    }

    fn unreadable(&self, source: io::Error) -> DatasetError {
        DatasetError::Read { path: PathBuf::from(&*self.path), source }
    }
}

/// Reads rows in any order.
#[derive(Debug)]
pub(super) struct JsonRows<'a> {
    table: &'a JsonFile,
    file: File,
    columns: Arc<[String]>,
    text: Vec<u8>,
}

impl JsonRows<'_> {
    /// The row of that number, from 0, which must be below the table's length.
    pub(super) fn read(&mut self, number: usize) -> Result<Row, DatasetError> {
        let span = self.table.spans[number];
        self.text.clear();
        let read = self
            .file
            .seek(SeekFrom::Start(span.start))
            .and_then(|_| Read::by_ref(&mut self.file).take(span.len).read_to_end(&mut self.text));
        read.map_err(|source| self.table.unreadable(source))?;
        let place = Place { path: Arc::clone(&self.table.path), number: span.line, is_line: true };
        match cells(&self.text, &self.columns) {
            Ok(cells) => Ok(Row { place, columns: Arc::clone(&self.columns), cells }),
            Err(error) => Err(place.bad(error.to_string())),
        }
    }
}

/// The columns of a row.
pub(super) fn cells(
    text: &[u8],
    columns: &[String],
) -> Result<Vec<Option<Cell>>, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let cells = reader.deserialize_map(Columns(columns))?;
    reader.end()?;
    Ok(cells)
}

struct Columns<'c>(&'c [String]);

impl<'de> Visitor<'de> for Columns<'_> {
    type Value = Vec<Option<Cell>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut cells = vec![None; self.0.len()];
        while let Some(Key(key)) = entries.next_key()? {
            match self.0.iter().position(|name| *name == key) {
                Some(at) => cells[at] = Some(entries.next_value()?),
                None => drop(entries.next_value::<IgnoredAny>()?),
            }
        }
        Ok(cells)
    }
}

/// A key, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);
