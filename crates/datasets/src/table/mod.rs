//! Datasets as tables: rows of named columns, from Parquet or JSON, from a file, a folder or the hub.
//!
//! A [`Table`] knows how many rows it has and reads those that are asked for, with the columns that
//! are asked for; neither a file nor a column is ever held as a whole.
//!
//! # Example
//!
//! ```
//! use servebench_datasets::table::Table;
//!
//! let file = tempfile::NamedTempFile::with_suffix(".jsonl")?;
//! std::fs::write(file.path(), "{\"q\": \"one\", \"n\": 1}\n{\"q\": \"two\"}\n")?;
//! let table = Table::open(file.path(), None, "train")?;
//! let rows = table.pick(&["q", "n"], &[1, 0])?;
//! assert_eq!(rows[0].text("q")?, "two");
//! assert!(rows[0].text("n").unwrap_err().to_string().ends_with("line 2: there is no `n`"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod cell;
mod files;
#[doc(hidden)]
pub mod fuzzing;
mod hub;
mod index;
mod json;
#[cfg(feature = "parquet")]
mod parquet;
mod row;
mod rows;
#[cfg(feature = "parquet")]
mod thrift;

pub use cell::Cell;
pub use hub::HubDataset;
pub use row::Row;
pub use rows::Rows;

use crate::DatasetError;
use crate::lines::refuse_foreign;
use files::Format;
use json::JsonFile;
use servebench_tokens::files_under;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Rows of named columns, in one or several files.
#[derive(Debug)]
pub struct Table {
    shards: Vec<Shard>,
    /// For each file, the rows up to its end.
    ends: Vec<usize>,
    name: String,
}

#[derive(Debug)]
enum Shard {
    Json(JsonFile),
    #[cfg(feature = "parquet")]
    Parquet(parquet::ParquetFile),
}

impl Table {
    /// The table in a file, or in the files of a folder that is laid out as the hub's repositories.
    ///
    /// In a folder, `config` names the part and `split` the split; of a file all is read. A file is
    /// Parquet, one JSON array of objects, or an object a line; what it begins with tells.
    pub fn open(path: &Path, config: Option<&str>, split: &str) -> Result<Self, DatasetError> {
        let name = path.display().to_string();
        if !path.is_dir() {
            return Self::of_files(&[path.to_owned()], name);
        }
        let names = files_under(path);
        let format = if Format::Parquet.is_in(&names) { Format::Parquet } else { Format::Json };
        let chosen = files::choose(&names, format, config, split);
        let chosen =
            chosen.map_err(|problem| DatasetError::NoTable { place: name.clone(), problem })?;
        let paths: Vec<PathBuf> = chosen.iter().map(|name| path.join(name)).collect();
        Self::of_files(&paths, name)
    }

    fn of_files(paths: &[PathBuf], name: String) -> Result<Self, DatasetError> {
        let shards = paths.iter().map(|path| Shard::open(path)).collect::<Result<Vec<_>, _>>()?;
        let ends = shards.iter().scan(0, |rows, shard| {
            *rows += shard.len();
            Some(*rows)
        });
        Ok(Self { ends: ends.collect(), shards, name })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The file, folder or repository, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All rows, in their order.
    pub fn rows(&self, columns: &[&str]) -> Rows<'_> {
        Rows::new(self, columns, 0..self.len())
    }

    /// The rows of those numbers (from 0), in the order of the numbers; a number may come twice.
    ///
    /// The files are gone through once, from their beginning to the last row wanted.
    ///
    /// # Panics
    ///
    /// When a number is not below [`len`](Self::len).
    pub fn pick(&self, columns: &[&str], numbers: &[usize]) -> Result<Vec<Row>, DatasetError> {
        let mut wanted = numbers.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let rows = Rows::new(self, columns, wanted.iter().copied());
        let rows = rows.collect::<Result<Vec<Row>, _>>()?;
        let row = |number: &usize| rows[wanted.partition_point(|other| other < number)].clone();
        Ok(numbers.iter().map(row).collect())
    }
}

impl Shard {
    fn open(path: &Path) -> Result<Self, DatasetError> {
        if is_parquet(path)? {
            #[cfg(feature = "parquet")]
            return Ok(Self::Parquet(parquet::ParquetFile::open(path)?));
            #[cfg(not(feature = "parquet"))]
            return Err(DatasetError::NoTable {
                place: path.display().to_string(),
                problem: "this build does not read Parquet (feature parquet)".to_owned(),
            });
        }
        JsonFile::open(path).map(Self::Json)
    }

    fn len(&self) -> usize {
        match self {
            Self::Json(file) => file.len(),
            #[cfg(feature = "parquet")]
            Self::Parquet(file) => file.len(),
        }
    }
}

/// Whether a file is Parquet, by its name or its first bytes.
fn is_parquet(path: &Path) -> Result<bool, DatasetError> {
    if path.extension().is_some_and(|extension| extension == "parquet") {
        return Ok(true);
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(8).read_to_end(&mut begin));
    read.map_err(|source| DatasetError::Read { path: path.to_owned(), source })?;
    refuse_foreign(path, &begin)?;
    Ok(begin.starts_with(b"PAR1"))
}
