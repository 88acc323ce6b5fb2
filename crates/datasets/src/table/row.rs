//! One row of a table, and where it stands.

use super::Cell;
use crate::DatasetError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a row is: its file, and its line or number in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) path: Arc<Path>,
    /// From 1: the line where a row of JSON begins, else the number of the row.
    pub(super) number: usize,
    pub(super) is_line: bool,
}

impl Place {
    /// What is wrong with the row there.
    pub(super) fn bad(&self, problem: impl Into<String>) -> DatasetError {
        let (path, problem) = (PathBuf::from(&*self.path), problem.into());
        if self.is_line {
            DatasetError::Line { path, line: self.number, problem }
        } else {
            DatasetError::Row { path, row: self.number, problem }
        }
    }
}

/// The columns asked for of one row.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub(super) place: Place,
    pub(super) columns: Arc<[String]>,
    /// `None` for a column that this row does not have, as can be in JSON.
    pub(super) cells: Vec<Option<Cell>>,
}

impl Row {
    /// The value of a column; `None` if the row has none or the column was not asked for.
    pub fn get(&self, column: &str) -> Option<&Cell> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.cells.get(at)?.as_ref()
    }

    /// Takes the value of a column out of the row.
    pub fn take(&mut self, column: &str) -> Option<Cell> {
        let at = self.columns.iter().position(|name| name == column)?;
        self.cells.get_mut(at)?.take()
    }

    /// The value of a column that every row must have.
    pub fn need(&self, column: &str) -> Result<&Cell, DatasetError> {
        self.get(column).ok_or_else(|| self.bad(format!("there is no `{column}`")))
    }

    /// The text of a column that every row must have.
    pub fn text(&self, column: &str) -> Result<&str, DatasetError> {
        let cell = self.need(column)?;
        cell.text().ok_or_else(|| self.bad(format!("`{column}` is {}, not text", cell.kind())))
    }

    /// The error that this row is not what it should be; it names file and row.
    pub fn bad(&self, problem: impl Into<String>) -> DatasetError {
        self.place.bad(problem)
    }
}
