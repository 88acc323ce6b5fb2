//! Tables in Parquet files.

use super::Cell;
use super::row::{Place, Row};
use super::thrift::check;
use crate::DatasetError;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use parquet::record::Field;
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::schema::types::{SchemaDescPtr, SchemaDescriptor, Type};
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Values of a column that are read ahead.
const READ_AHEAD: usize = 16;
/// Most rows of a file; a broken file may claim any number.
const MOST_ROWS: usize = 1 << 28;

/// A Parquet file.
pub(super) struct ParquetFile {
    path: Arc<Path>,
    file: Box<dyn FileReader>,
    /// For each group of rows, the rows up to its end.
    ends: Vec<usize>,
}

impl fmt::Debug for ParquetFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFile").field("path", &self.path).finish_non_exhaustive()
    }
}

impl ParquetFile {
    pub(super) fn open(path: &Path) -> Result<Self, DatasetError> {
        let failed = |source| DatasetError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        Self::new(file, path)
    }

    /// Reads what is at the end of a file: its columns, and where the groups of rows are.
    pub(super) fn new(
        bytes: impl ChunkReader + 'static,
        path: &Path,
    ) -> Result<Self, DatasetError> {
        let bad = |problem| DatasetError::Parquet { path: path.to_owned(), source: problem };
        let file = guarded(|| {
            let file = Strict(bytes);
            file.check_footer()?;
            SerializedFileReader::new(file)
        });
        let file = file.map_err(bad)?;
        let mut ends = Vec::new();
        let mut rows = 0_usize;
        for group in file.metadata().row_groups() {
            let more = usize::try_from(group.num_rows()).ok();
            let sum = more.and_then(|more| rows.checked_add(more));
            let Some(sum) = sum.filter(|&sum| sum <= MOST_ROWS) else {
                return Err(bad(format!("it claims to have {} rows", group.num_rows()).into()));
            };
            rows = sum;
            ends.push(rows);
        }
        Ok(Self { path: path.into(), file: Box::new(file), ends })
    }

    pub(super) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The names of all columns.
    pub(super) fn columns(&self) -> Arc<[String]> {
        let schema = self.file.metadata().file_metadata().schema();
        schema.get_fields().iter().map(|field| field.name().to_owned()).collect()
    }

    /// Reads rows forward.
    pub(super) fn reader(&self, columns: Arc<[String]>) -> Result<ParquetRows<'_>, DatasetError> {
        let schema = self.file.metadata().file_metadata().schema();
        let field = |name: &String| {
            let mut fields = schema.get_fields().iter();
            fields.find(|field| field.name() == name).cloned().ok_or_else(|| {
                let (path, column) = (PathBuf::from(&*self.path), name.clone());
                DatasetError::NoColumn { path, column, found: self.columns().to_vec() }
            })
        };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let projection = guarded(|| {
            let root = Type::group_type_builder(schema.name()).with_fields(fields).build()?;
            Ok(Arc::new(SchemaDescriptor::new(Arc::new(root))))
        });
        let projection = projection.map_err(|source| self.bad(source))?;
        Ok(ParquetRows { table: self, columns, projection, group: None, next: 0 })
    }

    fn bad(&self, source: Broken) -> DatasetError {
        DatasetError::Parquet { path: PathBuf::from(&*self.path), source }
    }
}

/// Reads rows in ascending order.
pub(super) struct ParquetRows<'a> {
    table: &'a ParquetFile,
    columns: Arc<[String]>,
    projection: SchemaDescPtr,
    /// The group that is being read, and the rest of its rows.
    group: Option<(usize, ReaderIter)>,
    /// The row that comes next there.
    next: usize,
}

impl ParquetRows<'_> {
    /// The row of that number, from 0, which must be below the table's length and not before one
    /// that was read.
    pub(super) fn read(&mut self, number: usize) -> Result<Row, DatasetError> {
        let place =
            Place { path: Arc::clone(&self.table.path), number: number + 1, is_line: false };
        let fields = guarded(|| self.advance(number)).map_err(|source| {
            self.group = None;
            place.bad(source.to_string())
        })?;
        // The projection has the columns in their order.
        let cells = fields.into_iter().map(|(_, field)| Some(cell(field))).collect();
        Ok(Row { place, columns: Arc::clone(&self.columns), cells })
    }

    fn advance(&mut self, number: usize) -> Result<Vec<(String, Field)>, ParquetError> {
        let at = self.table.ends.partition_point(|&end| end <= number);
        if self.group.as_ref().is_none_or(|(group, _)| *group != at) {
            let group = self.table.file.get_row_group(at)?;
            let tree = TreeBuilder::new().with_batch_size(READ_AHEAD);
            self.group = Some((at, tree.as_iter(Arc::clone(&self.projection), &*group)?));
            self.next = at.checked_sub(1).map_or(0, |before| self.table.ends[before]);
        }
        let ended = || ParquetError::General("the group of rows ends before it".to_owned());
        let (_, rows) = self.group.as_mut().ok_or_else(ended)?;
        loop {
            let row = rows.next().ok_or_else(ended)??;
            self.next += 1;
            if self.next > number {
                return Ok(row.into_columns());
            }
        }
    }
}

/// Bytes at the end of a file: how long the footer before them is, and the name of the format.
const TAIL: u64 = 8;

/// A file past whose end nothing can be read, and in which no list is longer than what comes. The Parquet reader
/// skips values that are not there for as long as a broken list says, which may be hours.
struct Strict<T>(T);

impl<T: ChunkReader> Strict<T> {
    /// Looks through what stands at the end of a file.
    fn check_footer(&self) -> Result<(), ParquetError> {
        // What is no Parquet file at all the reader itself finds out.
        let Some(end) = self.len().checked_sub(TAIL) else { return Ok(()) };
        let tail = self.get_bytes(end, TAIL as usize)?;
        let [a, b, c, d, b'P', b'A', b'R', b'1'] = tail[..] else { return Ok(()) };
        let length = u32::from_le_bytes([a, b, c, d]);
        let Some(start) = end.checked_sub(length.into()) else { return Ok(()) };
        let footer = self.get_bytes(start, length as usize)?;
        check(&mut &*footer).map_err(|error| broken(&error))
    }
}

fn broken(error: &io::Error) -> ParquetError {
    ParquetError::General(format!("its metadata are broken: {error}"))
}

impl<T: ChunkReader> ChunkReader for Strict<T> {
    type T = Strict<T::T>;

    /// What is read this way are pages, each with a header, and the end of the file.
    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        if start < self.len().saturating_sub(TAIL) {
            let mut header = self.0.get_read(start)?;
            check(&mut header).map_err(|error| broken(&error))?;
        }
        self.0.get_read(start).map(Strict)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

impl<T: Length> Length for Strict<T> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<T: Read> Read for Strict<T> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        match self.0.read(room)? {
            0 if !room.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            count => Ok(count),
        }
    }
}

/// Why a file could not be read.
type Broken = Box<dyn Error + Send + Sync>;

/// Runs the Parquet reader, which panics on some files that are broken (60.1).
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Broken> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ParquetError::External(source))) => Err(source),
        Ok(Err(ParquetError::General(text) | ParquetError::EOF(text))) => Err(text.into()),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err("its parts do not fit together".into()),
    }
}

fn cell(field: Field) -> Cell {
    match field {
        Field::Null => Cell::Null,
        Field::Bool(value) => Cell::Bool(value),
        Field::Byte(value) => Cell::Int(value.into()),
        Field::Short(value) => Cell::Int(value.into()),
        Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => {
            Cell::Int(value.into())
        }
        Field::Long(value)
        | Field::TimeMicros(value)
        | Field::TimestampMillis(value)
        | Field::TimestampMicros(value) => Cell::Int(value),
        Field::UByte(value) => Cell::Int(value.into()),
        Field::UShort(value) => Cell::Int(value.into()),
        Field::UInt(value) => Cell::Int(value.into()),
        Field::ULong(value) => i64::try_from(value).map_or(Cell::Float(value as f64), Cell::Int),
        Field::Float16(value) => Cell::Float(value.into()),
        Field::Float(value) => Cell::Float(value.into()),
        Field::Double(value) => Cell::Float(value),
        Field::Str(text) => Cell::Text(text),
        Field::Bytes(bytes) => Cell::Bytes(bytes.data().to_vec()),
        Field::Group(row) => Cell::Struct(
            row.into_columns().into_iter().map(|(name, field)| (name, cell(field))).collect(),
        ),
        Field::ListInternal(list) => {
            Cell::List(list.elements().iter().cloned().map(cell).collect())
        }
        Field::MapInternal(map) => {
            let pair = |(key, value): &(Field, Field)| {
                let named = |name: &str, field: &Field| (name.to_owned(), cell(field.clone()));
                Cell::Struct(vec![named("key", key), named("value", value)])
            };
            Cell::List(map.entries().iter().map(pair).collect())
        }
        decimal @ Field::Decimal(_) => Cell::Text(decimal.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_can_be_read_past_the_end_of_a_file() {
        let file = Strict(Bytes::from_static(b"abc"));
        let mut from = file.get_read(1).unwrap();
        let mut room = [0; 8];
        assert_eq!((file.len(), from.read(&mut room).unwrap()), (3, 2));
        assert_eq!(from.read(&mut []).unwrap(), 0);
        let past = from.read(&mut room).unwrap_err();
        assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
    }
}
