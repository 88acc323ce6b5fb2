//! One file of a repository, brought into the cache in the layout of the Python libraries.

use super::transfer::{Answer, Trouble};
use super::{Hub, RepoKind, is_inside, repo_of};
use crate::TokensError;
use hf_hub::{Cache, CacheRepo};
use std::fs::File;
use std::path::{Path, PathBuf};
use ureq::http::{HeaderMap, StatusCode, header};

/// What the hub tells of a file before it is fetched.
struct Told {
    commit: String,
    etag: String,
    size: u64,
}

impl Hub {
    /// Downloads a file into the cache.
    pub(super) fn download(
        &self,
        kind: RepoKind,
        repo: &str,
        revision: &str,
        file: &str,
    ) -> Result<PathBuf, TokensError> {
        if !is_inside(file) {
            return Err(TokensError::Missing { file: file.to_owned(), repo: repo.to_owned() });
        }
        self.check_online(repo, file)?;
        let place = repo_of(kind, repo, revision);
        let (endpoint, id) = (&self.config.endpoint, place.url());
        let url = format!("{endpoint}/{id}/resolve/{}/{file}", place.url_revision());
        let explain = |trouble| self.explain(repo, file, trouble);
        let told = self.ask(&url).map_err(explain)?;
        if told.size > self.config.size_limit {
            return Err(explain(Trouble::TooLarge));
        }
        let cache = Cache::new(self.config.cache_dir.clone()).repo(place);
        let blob = cache.blob_path(&told.etag);
        let got = self.fill(&url, file, &blob, told.size).map_err(explain)?;
        if got != told.size {
            let (file, repo) = (file.to_owned(), repo.to_owned());
            return Err(TokensError::Truncated { file, repo, got, want: told.size });
        }
        link(&cache, &told, file, &blob).map_err(|error| explain(error.into()))
    }

    /// Asks for the first byte of a file, which tells all of the rest.
    fn ask(&self, url: &str) -> Result<Told, Trouble> {
        let Answer { response, told } = self.get(url, Some("bytes=0-0"), true)?;
        let text = |headers: &HeaderMap, name: &str| -> Option<String> {
            Some(headers.get(name)?.to_str().ok()?.trim_matches(['W', '/', '"']).to_owned())
        };
        let name = |name: Option<String>, what: &str| -> Result<String, Trouble> {
            // It becomes the name of a file.
            let name = name.ok_or_else(|| format!("the hub does not tell the file's {what}"))?;
            if name.contains('/') || !is_inside(&name) {
                return Err(format!("the hub tells a {what} that makes no sense").into());
            }
            Ok(name)
        };
        let etag = text(&told, "x-linked-etag").or_else(|| text(&told, "etag"));
        let headers = response.headers();
        let size = if let Some(range) = headers.get(header::CONTENT_RANGE) {
            range.to_str()?.rsplit('/').next().unwrap_or_default().parse()?
        } else {
            let length = headers.get(header::CONTENT_LENGTH);
            length.ok_or("the hub does not tell the file's size")?.to_str()?.parse()?
        };
        let commit = name(text(&told, "x-repo-commit"), "commit")?;
        Ok(Told { commit, etag: name(etag, "etag")?, size })
    }

    /// Brings the bytes of a file into `blob`, going on where an earlier download broke off; how many
    /// there are.
    fn fill(&self, url: &str, file: &str, blob: &Path, size: u64) -> Result<u64, Trouble> {
        std::fs::create_dir_all(blob.parent().unwrap_or(Path::new("")))?;
        let part = blob.with_extension("part");
        let mut to = File::options().create(true).append(true).open(&part)?;
        // Another process may be at it; then it is waited for.
        to.lock()?;
        if std::fs::metadata(blob).is_ok_and(|meta| meta.len() == size) {
            return Ok(size);
        }
        let mut got = to.metadata()?.len();
        if got > size {
            // What an earlier download left does not fit what the hub has now.
            to.set_len(0)?;
            got = 0;
        }
        if got < size {
            let from = format!("bytes={got}-");
            let answer = match self.get(url, Some(&from), true) {
                Err(Trouble::Status(416)) => {
                    to.set_len(0)?;
                    got = 0;
                    self.get(url, None, true)?
                }
                answer => answer?,
            };
            if answer.response.status() != StatusCode::PARTIAL_CONTENT {
                to.set_len(0)?;
                got = 0;
            }
            let body = answer.response.into_body();
            let poured = self.pour(file, body, &mut to, got, Some(size));
            if matches!(poured, Err(Trouble::TooLarge)) {
                std::fs::remove_file(&part)?;
            }
            got = poured?;
        }
        if got == size {
            std::fs::rename(&part, blob)?;
        } else {
            // A body without a length that ends early looks complete.
            std::fs::remove_file(&part)?;
        }
        Ok(got)
    }
}

/// Makes the file visible in the snapshot of its commit.
fn link(cache: &CacheRepo, told: &Told, file: &str, blob: &Path) -> std::io::Result<PathBuf> {
    let pointer = cache.pointer_path(&told.commit).join(file);
    std::fs::create_dir_all(pointer.parent().unwrap_or(Path::new("")))?;
    if !pointer.exists() {
        if pointer.is_symlink() {
            std::fs::remove_file(&pointer)?;
        }
        place(blob, &pointer, file)?;
    }
    cache.create_ref(&told.commit)?;
    Ok(pointer)
}

/// A link relative to its place, so that the cache can be moved.
#[cfg(unix)]
fn place(blob: &Path, pointer: &Path, file: &str) -> std::io::Result<()> {
    // Out of the snapshot's own folders, then out of `snapshots/COMMIT`.
    let up = "../".repeat(file.split('/').count() + 1);
    let name = blob.file_name().unwrap_or_default();
    std::os::unix::fs::symlink(Path::new(&up).join("blobs").join(name), pointer)
}

#[cfg(not(unix))]
fn place(blob: &Path, pointer: &Path, _file: &str) -> std::io::Result<()> {
    std::fs::rename(blob, pointer)
}
