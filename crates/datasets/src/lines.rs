//! What every file of rows has: lines, and a beginning that tells what it is not.

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

/// How the files begin that packers write.
const PACKINGS: [(&str, &[u8]); 5] = [
    ("gzip", b"\x1f\x8b"),
    ("zip", b"PK\x03\x04"),
    ("zstd", b"\x28\xb5\x2f\xfd"),
    ("bzip2", b"BZh"),
    ("xz", b"\xfd7zXZ\0"),
];

/// Refuses a file that holds nothing or is packed, by its first bytes: what a reader of rows would
/// say of it would not help.
pub(crate) fn refuse_foreign(path: &Path, begin: &[u8]) -> Result<(), DatasetError> {
    if begin.is_empty() {
        return Err(DatasetError::Empty { path: path.to_owned() });
    }
    match PACKINGS.iter().find(|(_, magic)| begin.starts_with(magic)) {
        Some((packing, _)) => Err(DatasetError::Packed { path: path.to_owned(), packing }),
        None => Ok(()),
    }
}

/// What Python's `str.strip` takes off: Unicode's white space and four separators.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(begin: &[u8]) -> Option<String> {
        refuse_foreign(Path::new("rows"), begin).err().map(|error| error.to_string())
    }

    #[test]
    fn files_that_hold_no_rows_are_told_by_how_they_begin() {
        assert_eq!(said(b"{}\n"), None);
        assert_eq!(said(b"PAR1"), None);
        assert_eq!(said(b"").as_deref(), Some("the dataset rows is empty"));
        let packed = said(b"\x1f\x8b\x08\0").unwrap_or_default();
        assert!(packed.contains("(gzip): unpack it"), "{packed}");
    }
}
