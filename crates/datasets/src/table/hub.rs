//! Datasets of the hub.

use super::Table;
use super::files::Format::{Json, Parquet};
use super::files::choose;
use crate::DatasetError;
use servebench_tokens::{Hub, RepoKind, TokensError};

/// Where the hub keeps the Parquet files that it makes of datasets of other formats.
const CONVERTED: &str = "refs/convert/parquet";

/// A split of a dataset of the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubDataset<'a> {
    /// `owner/name`.
    pub repo: &'a str,
    /// The part, where it has several (`Math` of `MMMU/MMMU`).
    pub config: Option<&'a str>,
    /// The split: `train`, `test`, …
    pub split: &'a str,
}

impl Table {
    /// The table of a dataset of the hub, from the cache, else downloaded into it.
    ///
    /// Its own Parquet files come first, then those that the hub made of it, then its JSON. The hub
    /// is asked for the list of files even where they are in the cache; offline the cache is enough.
    pub fn fetch(hub: &Hub, dataset: HubDataset<'_>) -> Result<Self, DatasetError> {
        let failed = |source| DatasetError::Hub { dataset: dataset.repo.to_owned(), source };
        let list = |revision| hub.files(RepoKind::Dataset, dataset.repo, revision);
        let own = match list(None) {
            Err(error @ (TokensError::Missing { .. } | TokensError::Denied { .. })) => {
                return Err(failed(error));
            }
            own => own,
        };
        let place = format!("{} of the hub", dataset.repo);
        let mut problem = None;
        for (revision, format) in [(None, Parquet), (Some(CONVERTED), Parquet), (None, Json)] {
            let converted = revision.and_then(|revision| list(Some(revision)).ok());
            let names = if revision.is_some() { converted.as_ref() } else { own.as_ref().ok() };
            let Some(names) = names.filter(|names| format.is_here() && format.is_in(names)) else {
                continue;
            };
            match choose(names, format, dataset.config, dataset.split) {
                Err(text) => problem = problem.or(Some(text)),
                Ok(chosen) => {
                    let fetch = |name: &String| {
                        hub.fetch_at(RepoKind::Dataset, dataset.repo, revision, name)
                    };
                    let paths = chosen.iter().map(fetch).collect::<Result<Vec<_>, _>>();
                    return Self::of_files(&paths.map_err(failed)?, place);
                }
            }
        }
        match (own, problem) {
            (Err(error), None) => Err(failed(error)),
            (_, problem) => {
                let problem = problem.unwrap_or_else(|| "no Parquet or JSON files".to_owned());
                Err(DatasetError::NoTable { place, problem })
            }
        }
    }
}
