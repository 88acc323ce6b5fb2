//! Files of the Hugging Face hub, through the cache that the Python libraries use too.

mod config;
mod files;
mod web;

pub use config::HubConfig;
pub use files::files_under;

use crate::TokensError;
use hf_hub::api::Progress;
use hf_hub::api::sync::{ApiBuilder, ApiError, ApiRepo};
use hf_hub::{Cache, Repo, RepoType};
use std::cell::Cell;
use std::fmt;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
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

    /// The hub's interface for a repository; `file` is what it is wanted for.
    fn api(&self, repo: Repo, name: &str, file: &str) -> Result<ApiRepo, TokensError> {
        if self.config.offline {
            let cache = self.config.cache_dir.clone();
            return Err(TokensError::Offline { file: file.into(), repo: name.into(), cache });
        }
        let unavailable = |source| self.unavailable(name, file, source);
        self.check_reachable().map_err(|error| unavailable(error.into()))?;
        let api = ApiBuilder::from_cache(Cache::new(self.config.cache_dir.clone()))
            .with_endpoint(self.config.endpoint.clone())
            .with_token(self.config.token.clone())
            .with_progress(false)
            .build()
            .map_err(|error| unavailable(error.into()))?;
        Ok(api.repo(repo))
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
            endpoint: self.config.endpoint.as_str().into(),
            cache: self.config.cache_dir.as_path().into(),
            source,
        }
    }

    /// What an answer of the hub other than the file means.
    fn refused(&self, repo: &str, file: &str, error: ApiError) -> TokensError {
        let (file_name, repo_name) = (file.to_owned(), repo.to_owned());
        match status_of(&error) {
            Some(404) => TokensError::Missing { file: file_name, repo: repo_name },
            Some(status @ (401 | 403)) => {
                TokensError::Denied { file: file_name, repo: repo_name, status }
            }
            _ => self.unavailable(repo, file, error.into()),
        }
    }

    fn download(
        &self,
        kind: RepoKind,
        repo: &str,
        revision: &str,
        file: &str,
    ) -> Result<PathBuf, TokensError> {
        let api = self.api(repo_of(kind, repo, revision), repo, file)?;
        let total = Cell::new(0);
        let mut result = self.attempt(&api, file, &total);
        if matches!(&result, Err(Some(error)) if is_bad_resume(error)) {
            // What an earlier download left does not fit what the hub has now.
            self.discard_parts(kind, repo);
            result = self.attempt(&api, file, &total);
        }
        let path = match result {
            Ok(path) => path,
            Err(Some(error)) => return Err(self.refused(repo, file, error)),
            Err(None) => {
                let source = "the hub's answer made no sense".into();
                return Err(self.unavailable(repo, file, source));
            }
        };
        // A body without a length that ends early looks complete to the downloader.
        let got = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        if got == total.get() {
            return Ok(path);
        }
        remove_with_target(&path);
        let (file, repo) = (file.to_owned(), repo.to_owned());
        Err(TokensError::Truncated { file, repo, got, want: total.get() })
    }

    /// One download; `Err(None)` when the downloader gave up on an answer it did not expect.
    fn attempt(
        &self,
        api: &ApiRepo,
        file: &str,
        total: &Cell<u64>,
    ) -> Result<PathBuf, Option<ApiError>> {
        let progress = Watch { hub: self, file, bytes: 0, total };
        // hf-hub asserts on redirects without a target and the like: bytes from outside.
        catch_unwind(AssertUnwindSafe(|| api.download_with_progress(file, progress)))
            .map_err(|_| None)?
            .map_err(Some)
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

    /// Best effort: if one stays, the second attempt fails as the first did.
    fn discard_parts(&self, kind: RepoKind, repo: &str) {
        let Ok(blobs) = std::fs::read_dir(self.repo_dir(kind, repo).join("blobs")) else { return };
        for path in blobs.flatten().map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "part") {
                drop(std::fs::remove_file(path));
            }
        }
    }
}

struct Watch<'a> {
    hub: &'a Hub,
    file: &'a str,
    bytes: u64,
    total: &'a Cell<u64>,
}

impl Progress for Watch<'_> {
    fn init(&mut self, size: usize, _filename: &str) {
        self.bytes = 0;
        self.total.set(size as u64);
    }

    fn update(&mut self, size: usize) {
        self.bytes += size as u64;
        if let Some(on_progress) = &self.hub.on_progress {
            on_progress(&Downloaded {
                file: self.file.to_owned(),
                bytes: self.bytes,
                total: self.total.get(),
            });
        }
    }

    fn finish(&mut self) {}
}

fn repo_of(kind: RepoKind, repo: &str, revision: &str) -> Repo {
    let kind = match kind {
        RepoKind::Model => RepoType::Model,
        RepoKind::Dataset => RepoType::Dataset,
    };
    Repo::with_revision(repo.to_owned(), kind, revision.to_owned())
}

fn status_of(error: &ApiError) -> Option<u16> {
    match error {
        ApiError::RequestError(error) => match **error {
            ureq::Error::StatusCode(status) => Some(status),
            _ => None,
        },
        ApiError::TooManyRetries(error) => status_of(error),
        _ => None,
    }
}

fn is_bad_resume(error: &ApiError) -> bool {
    matches!(error, ApiError::InvalidResume) || status_of(error) == Some(416)
}

/// Removes a snapshot's link and the blob behind it.
fn remove_with_target(link: &Path) {
    if let Ok(blob) = link.canonicalize() {
        drop(std::fs::remove_file(blob));
    }
    drop(std::fs::remove_file(link));
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
