//! Where the files of a tokenizer are.

use crate::{Hub, RepoKind, TokensError};
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

pub(crate) const TOKENIZER: &str = "tokenizer.json";
pub(crate) const CONFIG: &str = "tokenizer_config.json";
pub(crate) const SPECIAL_TOKENS: &str = "special_tokens_map.json";
pub(crate) const TEMPLATE: &str = "chat_template.jinja";
pub(crate) const PROCESSOR: &str = "processor_config.json";
pub(crate) const LEGACY_TEMPLATE: &str = "chat_template.json";

/// A place that holds a tokenizer's files.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// A folder, and the tokenizer's file in it (usually `tokenizer.json`).
    Folder { folder: PathBuf, tokenizer: PathBuf },
    /// A model on the hub. Warm: its tokenizer was in the cache when it was asked for.
    Model { hub: Hub, repo: String, tokenizer: PathBuf, warm: bool },
    /// Nowhere: the tokenizer is built in.
    BuiltIn,
}

impl Source {
    /// Finds a tokenizer: a path that exists, else a model on the hub.
    pub(crate) fn find(name: &str, hub: &Hub) -> Result<Self, TokensError> {
        let path = Path::new(name);
        if path.is_dir() {
            let tokenizer = path.join(TOKENIZER);
            return if tokenizer.is_file() {
                Ok(Self::Folder { folder: path.to_owned(), tokenizer })
            } else {
                Err(TokensError::NotFast { name: name.to_owned() })
            };
        }
        if path.is_file() {
            if path.extension().is_none_or(|extension| extension != "json") {
                return Err(TokensError::NotFast { name: name.to_owned() });
            }
            let folder = path.parent().unwrap_or(Path::new("")).to_owned();
            return Ok(Self::Folder { folder, tokenizer: path.to_owned() });
        }
        if !Hub::is_repo_id(name) {
            return Err(TokensError::NoSuchName { name: name.to_owned() });
        }
        let warm = hub.cached(RepoKind::Model, name, TOKENIZER).is_some();
        let tokenizer =
            hub.fetch(RepoKind::Model, name, TOKENIZER).map_err(|error| match error {
                TokensError::Missing { repo, .. } => TokensError::NotFast { name: repo },
                other => other,
            })?;
        Ok(Self::Model { hub: hub.clone(), repo: name.to_owned(), tokenizer, warm })
    }

    /// A file beside the tokenizer, if there is one.
    pub(crate) fn beside(&self, file: &str) -> Result<Option<PathBuf>, TokensError> {
        match self {
            Self::Folder { folder, .. } => {
                Ok(Some(folder.join(file)).filter(|path| path.is_file()))
            }
            Self::Model { hub, repo, warm, .. } => {
                match hub.fetch_optional(RepoKind::Model, repo, file) {
                    // A cache that was filled elsewhere must do without the hub.
                    Err(TokensError::Download { .. }) if *warm => Ok(None),
                    other => other,
                }
            }
            Self::BuiltIn => Ok(None),
        }
    }

    /// The JSON object in a file beside the tokenizer, empty if there is no such file.
    pub(crate) fn object_beside(&self, file: &str) -> Result<Map<String, Value>, TokensError> {
        match self.beside(file)? {
            None => Ok(Map::new()),
            Some(path) => serde_json::from_slice(&read(&path)?)
                .map_err(|source| TokensError::Config { path, source }),
        }
    }
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TokensError> {
    std::fs::read(path).map_err(|source| TokensError::Read { path: path.to_owned(), source })
}
