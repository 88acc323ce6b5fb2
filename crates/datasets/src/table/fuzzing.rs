//! Bodies of the fuzz targets: any bytes in, no panic, and what comes out keeps the promises.

use super::index::index;
use super::json::cells;

/// Bytes as a table of JSON.
pub fn table_json(bytes: &[u8]) {
    let columns = ["category", "turns"].map(str::to_owned);
    let Ok(Ok(spans)) = index(bytes) else { return };
    let text = |start: u64, len: u64| &bytes[start as usize..(start + len) as usize];
    let mut end = 0;
    for span in &spans {
        assert!(span.start >= end && span.len > 0, "rows overlap");
        end = span.start + span.len;
        if let Ok(cells) = cells(text(span.start, span.len), &columns) {
            assert_eq!(cells.len(), columns.len(), "a column is missing");
        }
    }
    // What a JSON reader takes for an array has the same values in the same order.
    if let Ok(values) = serde_json::from_slice::<Vec<&serde_json::value::RawValue>>(bytes) {
        let found: Vec<&[u8]> = spans.iter().map(|span| text(span.start, span.len)).collect();
        let values: Vec<&[u8]> = values.iter().map(|value| value.get().as_bytes()).collect();
        assert_eq!(found, values, "other rows than the array has");
    }
}

/// Bytes as a Parquet file, of which the first rows are read.
#[cfg(feature = "parquet")]
pub fn table_parquet(bytes: &[u8]) {
    use super::parquet::ParquetFile;
    const MOST: usize = 64;
    let bytes = bytes::Bytes::copy_from_slice(bytes);
    let Ok(file) = ParquetFile::new(bytes, std::path::Path::new("table")) else { return };
    let columns = file.columns();
    let Ok(mut rows) = file.reader(columns.clone()) else { return };
    for number in 0..file.len().min(MOST) {
        if let Ok(row) = rows.read(number) {
            assert_eq!(row.cells.len(), columns.len(), "a column is missing");
        }
    }
}
