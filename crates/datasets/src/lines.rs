//! Files of one JSON value a line.

use crate::DatasetError;
use std::path::Path;

/// The lines that hold something, with their numbers from 1. Python ends a line at a lone carriage
/// return too.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split('\n').enumerate().flat_map(|(at, line)| {
        line.split('\r').map(move |line| (at + 1, line.trim_matches(is_python_space)))
    });
    lines.filter(|(_, line)| !line.is_empty())
}

/// What is wrong with a line of a file.
pub(crate) fn bad_line(path: &Path, line: usize, problem: String) -> DatasetError {
    DatasetError::Line { path: path.to_owned(), line, problem }
}

/// What Python's `str.strip` takes off: Unicode's white space and four separators.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}
