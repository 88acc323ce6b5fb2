//! Why a dataset could not be loaded.

use servebench_tokens::TokensError;
use std::error::Error;
use std::path::PathBuf;

/// Why no samples came of a dataset.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DatasetError {
    /// An option has a value that makes no sense.
    #[error("{flag} {problem}")]
    Option {
        /// The flag.
        flag: &'static str,
        /// What is wrong with its value.
        problem: String,
    },
    /// The dataset is a file, and none was named.
    #[error("--dataset-name {name} needs a file: give --dataset-path")]
    NoPath {
        /// The dataset.
        name: &'static str,
    },
    /// The file could not be read.
    #[error("cannot read the dataset {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds nothing.
    #[error("the dataset {} is empty", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The file was packed by another program.
    #[error("the dataset {} is packed ({packing}): unpack it, and give what was in it", path.display())]
    Packed {
        /// The file.
        path: PathBuf,
        /// How: `gzip`, `zip`, `zstd`, `bzip2` or `xz`.
        packing: &'static str,
    },
    /// The file is not text.
    #[error("the dataset {} is not UTF-8 (line {line}, byte {at} of the file)", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
        /// The line of the first byte that is none, from 1.
        line: usize,
        /// Where that byte is, from 0.
        at: usize,
    },
    /// The file is not the JSON it should be.
    #[error("bad JSON in the dataset {} after {rows} rows", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Rows read before the mistake.
        rows: usize,
        /// Line, column and mistake.
        source: serde_json::Error,
    },
    /// A line of the file is not what it should be.
    #[error("bad row in the dataset {}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A row of a table is not what it should be.
    #[error("bad row in the dataset {}, row {row}: {problem}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The row, from 1.
        row: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// A field of a file is not what it should be.
    #[error("bad input {}: `{field}` {problem}", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Where in it.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file cannot be read as Parquet.
    #[error("the dataset {} is no Parquet file that can be read", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A table lacks a column.
    #[error("the dataset {} has no column `{column}`, only {}", path.display(), found.join(", "))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
        /// The columns it has.
        found: Vec<String>,
    },
    /// A folder or a repository does not hold the rows asked for.
    #[error("no such dataset in {place}: {problem}")]
    NoTable {
        /// The folder or the repository.
        place: String,
        /// What is missing or unclear.
        problem: String,
    },
    /// A dataset of the hub is not there and could not be fetched.
    #[error("cannot fetch the dataset {dataset}: give a file or folder by --dataset-path")]
    Hub {
        /// Its name on the hub.
        dataset: String,
        /// Why, with the file and the cache.
        source: TokensError,
    },
    /// The file is not a trace of conversations.
    #[error("the dataset {} is no trace of conversations", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// Line, column and mistake.
        source: serde_json::Error,
    },
    /// The file was read, and not one row of it can be used.
    #[error("no usable rows: {skipped} in {dataset}")]
    NoUsableRows {
        /// The file, or the dataset's name.
        dataset: String,
        /// How many rows were skipped, and why.
        skipped: String,
    },
    /// There are fewer usable rows than asked for, and all were required.
    #[error("--require-rows: {why}")]
    TooFewRows {
        /// How many there are of how many, in which file, and why the others are not used.
        why: String,
    },
    /// The corpus is not there and could not be fetched.
    #[error(
        "no corpus for --dataset-name {name}: give a ShareGPT file by --dataset-path, or use \
         --dataset-name random-ids, which needs none"
    )]
    NoCorpus {
        /// The dataset.
        name: &'static str,
        /// Why, with the file and the cache.
        source: TokensError,
    },
    /// The vocabulary has too few words of which each is one token.
    #[error(
        "--dataset-name random-words needs words that are one token each, of which `{tokenizer}` \
         has {found}: use --dataset-name random-ids --exact-lengths"
    )]
    NoWords {
        /// The tokenizer.
        tokenizer: String,
        /// How many words were found.
        found: usize,
    },
    /// Words that are one token each are more or fewer beside each other.
    #[error(
        "--dataset-name random-words needs words that stay one token each beside others; with \
         `{tokenizer}`, {wrong} of {checked} texts checked have another length: use \
         --dataset-name random-ids --exact-lengths"
    )]
    WordsMerge {
        /// The tokenizer.
        tokenizer: String,
        /// Texts that have another length than their words.
        wrong: usize,
        /// Texts checked.
        checked: usize,
    },
    /// The trace is not there and could not be fetched.
    #[error("no trace for --dataset-name mooncake: give --dataset-path (this one is at {url})")]
    NoTrace {
        /// Where it is published.
        url: &'static str,
        /// Why, with the file and the cache.
        source: TokensError,
    },
    /// This build makes and reads no pictures.
    #[error("--dataset-name {name} has pictures, which this build cannot make (feature images)")]
    NoPictures {
        /// The dataset.
        name: &'static str,
    },
    /// A picture could not be encoded.
    #[error("cannot make a picture as {format}: {problem}")]
    Encode {
        /// The file format.
        format: &'static str,
        /// Why.
        problem: String,
    },
    /// The model's processor takes no picture of that size.
    #[error("the model takes no picture of {width}x{height} pixels: {problem}")]
    NotForModel {
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Why.
        problem: String,
    },
    /// The tokenizer or its chat template failed.
    #[error("cannot prepare the prompts")]
    Tokens(#[from] TokensError),
}
