//! Files of the Hugging Face hub, through the cache that the Python libraries use too.

mod config;
mod download;
mod files;
mod transfer;
mod web;

pub use config::HubConfig;
pub use files::files_under;
use files::is_inside;

use crate::TokensError;
use hf_hub::{Cache, Repo, RepoType};
use std::fmt;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long the hub's address may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The revision that is meant where none is named.
const MAIN: &str = "main";

/// The two kinds of repository that hold what a benchmark needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepoKind {
    /// A model, with its tokenizer.
    Model,
    /// A dataset.
    Dataset,
}

/// How far a download is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// The file being fetched.
    pub file: String,
    /// Bytes there so far.
    pub bytes: u64,
    /// Bytes in all.
    pub total: u64,
}

type OnProgress = dyn Fn(&Downloaded) + Send + Sync;

/// Fetches files of the hub once and finds them in the cache ever after.
///
/// Nothing that comes from there is run, no file is taken that is larger than
/// [`HubConfig::size_limit`], and the token is shown to the hub's own server only, wherever that sends for
/// a file.
#[derive(Clone)]
pub struct Hub {
    config: HubConfig,
    on_progress: Option<Arc<OnProgress>>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Hub {
    /// A hub as configured.
    pub fn new(config: HubConfig) -> Self {
        Self { config, on_progress: None }
    }

    /// Calls `on_progress` while a file is downloaded, after every piece read.
    #[must_use]
    pub fn with_progress(self, on_progress: impl Fn(&Downloaded) + Send + Sync + 'static) -> Self {
        Self { on_progress: Some(Arc::new(on_progress)), ..self }
    }

    /// The configuration.
    pub fn config(&self) -> &HubConfig {
        &self.config
    }

    /// Whether `name` can be the id of a repository: `name` or `owner/name`, of letters, digits,
    /// `-`, `_` and `.`.
    pub fn is_repo_id(name: &str) -> bool {
        let part = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['.', '-'])
                && !part.ends_with(['.', '-'])
                && !part.contains("..")
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        };
        match name.split_once('/') {
            Some((owner, name)) => part(owner) && part(name),
            None => part(name),
        }
    }

    /// The file in the cache, if it is there.
    pub fn cached(&self, kind: RepoKind, repo: &str, file: &str) -> Option<PathBuf> {
        let repo = repo_of(kind, repo, MAIN);
        Cache::new(self.config.cache_dir.clone()).repo(repo).get(file)
    }

    /// The file from the cache, else downloaded into it.
    ///
    /// What is in the cache is used as it is: no request is made to ask for a newer version.
    pub fn fetch(&self, kind: RepoKind, repo: &str, file: &str) -> Result<PathBuf, TokensError> {
        match self.cached(kind, repo, file) {
            Some(path) => Ok(path),
            None => self.download(kind, repo, MAIN, file),
        }
    }

    /// As [`fetch`](Self::fetch), with `None` for a file that the repository does not have.
    ///
    /// That the file does not exist is noted in the cache, as Python does, and not asked again.
    /// Offline, a file that is not in the cache counts as one that does not exist.
    pub fn fetch_optional(
        &self,
        kind: RepoKind,
        repo: &str,
        file: &str,
    ) -> Result<Option<PathBuf>, TokensError> {
        if self.cached(kind, repo, file).is_none() && self.known_missing(kind, repo, file) {
            return Ok(None);
        }
        match self.fetch(kind, repo, file) {
            Ok(path) => Ok(Some(path)),
            Err(TokensError::Missing { .. }) => {
                self.note_missing(kind, repo, file);
                Ok(None)
            }
            Err(TokensError::Offline { .. }) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// Whether the hub may and can be asked for a file.
    fn check_online(&self, repo: &str, file: &str) -> Result<(), TokensError> {
        if self.config.offline {
            let cache = self.config.cache_dir.clone();
            return Err(TokensError::Offline { file: file.into(), repo: repo.into(), cache });
        }
        self.check_reachable().map_err(|error| self.unavailable(repo, file, error.into()))
    }

    fn unavailable(
        &self,
        repo: &str,
        file: &str,
        source: Box<dyn std::error::Error + Send + Sync>,
    ) -> TokensError {
        TokensError::Download {
            file: file.into(),
            repo: repo.into(),
            endpoint: self.config.shown_endpoint().into(),
            cache: self.config.cache_dir.as_path().into(),
            source,
        }
    }

    /// Fails soon where the network swallows packets: the downloader itself knows no timeout.
    fn check_reachable(&self) -> std::io::Result<()> {
        if self.config.proxied {
            return Ok(());
        }
        let (scheme, rest) =
            self.config.endpoint.split_once("://").unwrap_or(("https", &self.config.endpoint));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let has_port = authority
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()));
        let port = if scheme == "http" { 80 } else { 443 };
        let address = if has_port { authority.to_owned() } else { format!("{authority}:{port}") };
        let mut last = None;
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into()))
    }

    fn repo_dir(&self, kind: RepoKind, repo: &str) -> PathBuf {
        self.config.cache_dir.join(repo_of(kind, repo, MAIN).folder_name())
    }

    /// Python's mark for a file that does not exist at a commit.
    fn missing_mark(&self, kind: RepoKind, repo: &str, file: &str) -> Option<PathBuf> {
        let folder = self.repo_dir(kind, repo);
        let commit = std::fs::read_to_string(folder.join("refs").join("main")).ok()?;
        Some(folder.join(".no_exist").join(commit.trim()).join(file))
    }

    fn known_missing(&self, kind: RepoKind, repo: &str, file: &str) -> bool {
        self.missing_mark(kind, repo, file).is_some_and(|mark| mark.exists())
    }

    /// Best effort: without the mark the hub is asked again next time.
    fn note_missing(&self, kind: RepoKind, repo: &str, file: &str) {
        let Some(mark) = self.missing_mark(kind, repo, file) else { return };
        let made = mark.parent().map(std::fs::create_dir_all);
        if matches!(made, Some(Ok(()))) {
            drop(std::fs::File::create(mark));
        }
    }
}

fn repo_of(kind: RepoKind, repo: &str, revision: &str) -> Repo {
    let kind = match kind {
        RepoKind::Model => RepoType::Model,
        RepoKind::Dataset => RepoType::Dataset,
    };
    Repo::with_revision(repo.to_owned(), kind, revision.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_repositories_are_told_from_paths() {
        for good in ["gpt2", "org/name", "Qwen/Qwen2.5-7B", "a_b/c.d"] {
            assert!(Hub::is_repo_id(good), "{good}");
        }
        for bad in ["", "/abs", "./here", "../up", "a/b/c", "a b", "a:b", "a/..", "org/", "né"] {
            assert!(!Hub::is_repo_id(bad), "{bad}");
        }
    }
}
