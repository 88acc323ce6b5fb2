//! Reading the rows of a table.

use super::json::JsonRows;
use super::{Row, Shard, Table};
use crate::DatasetError;
use std::fmt;
use std::sync::Arc;

/// Rows of a table, read one after the other. A row that cannot be read is an error that names it;
/// those behind it can still be had.
pub struct Rows<'a> {
    table: &'a Table,
    columns: Arc<[String]>,
    /// Ascending numbers.
    wanted: Box<dyn Iterator<Item = usize> + 'a>,
    /// The file that is being read.
    reader: Option<(usize, Reader<'a>)>,
}

impl fmt::Debug for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

enum Reader<'a> {
    Json(JsonRows<'a>),
    #[cfg(feature = "parquet")]
    Parquet(super::parquet::ParquetRows<'a>),
}

impl<'a> Rows<'a> {
    pub(super) fn new(
        table: &'a Table,
        columns: &[&str],
        wanted: impl Iterator<Item = usize> + 'a,
    ) -> Self {
        let columns = columns.iter().map(|&name| name.to_owned()).collect();
        Self { table, columns, wanted: Box::new(wanted), reader: None }
    }

    fn read(&mut self, number: usize) -> Result<Row, DatasetError> {
        let ends = &self.table.ends;
        let at = ends.partition_point(|&end| end <= number);
        let before = at.checked_sub(1).map_or(0, |before| ends[before]);
        let reader = match self.reader.take() {
            Some((shard, reader)) if shard == at => reader,
            _ => Reader::new(&self.table.shards[at], &self.columns)?,
        };
        let (_, reader) = self.reader.insert((at, reader));
        match reader {
            Reader::Json(rows) => rows.read(number - before),
            #[cfg(feature = "parquet")]
            Reader::Parquet(rows) => rows.read(number - before),
        }
    }
}

impl<'a> Reader<'a> {
    fn new(shard: &'a Shard, columns: &Arc<[String]>) -> Result<Self, DatasetError> {
        match shard {
            Shard::Json(file) => file.reader(Arc::clone(columns)).map(Self::Json),
            #[cfg(feature = "parquet")]
            Shard::Parquet(file) => file.reader(Arc::clone(columns)).map(Self::Parquet),
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<Row, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.wanted.next()?;
        Some(self.read(number))
    }
}
