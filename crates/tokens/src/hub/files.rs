//! What files a repository has.

use super::{Hub, MAIN, RepoKind, repo_of};
use crate::TokensError;
use serde::Deserialize;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};

/// What is asked for when no file is: as it is called in errors.
const LISTING: &str = "list of files";
/// Folders below a snapshot that are looked into.
const DEPTH: usize = 8;

/// Longest list of files taken, in bytes: some 100 000 names.
const LISTING_LIMIT: u64 = 32 << 20;

/// The part of a repository's description that names its files.
#[derive(Deserialize)]
struct Listing {
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

impl Hub {
    /// The names of a repository's files at a revision (`None`: `main`), sorted.
    ///
    /// The hub is asked, since a cache may hold a part of them. Offline, or where the hub cannot be
    /// reached, they are the files in the cache.
    pub fn files(
        &self,
        kind: RepoKind,
        repo: &str,
        revision: Option<&str>,
    ) -> Result<Vec<String>, TokensError> {
        let listed = self.list(kind, repo, revision.unwrap_or(MAIN));
        match listed {
            Err(TokensError::Offline { .. } | TokensError::Download { .. }) => {
                let snapshot = self.snapshot(kind, repo, revision);
                let files = snapshot.map(|folder| files_under(&folder)).unwrap_or_default();
                if files.is_empty() { listed } else { Ok(files) }
            }
            listed => listed,
        }
    }

    /// As [`fetch`](Self::fetch), for a file at a revision (`None`: `main`).
    ///
    /// A snapshot that Python made without noting which revision it is serves for `main`.
    pub fn fetch_at(
        &self,
        kind: RepoKind,
        repo: &str,
        revision: Option<&str>,
        file: &str,
    ) -> Result<PathBuf, TokensError> {
        let cached = self.snapshot(kind, repo, revision).map(|folder| folder.join(file));
        match cached.filter(|path| path.is_file()) {
            Some(path) => Ok(path),
            None => self.download(kind, repo, revision.unwrap_or(MAIN), file),
        }
    }

    fn list(&self, kind: RepoKind, repo: &str, revision: &str) -> Result<Vec<String>, TokensError> {
        self.check_online(repo, LISTING)?;
        let (endpoint, place) = (&self.config.endpoint, repo_of(kind, repo, revision));
        let url = format!("{endpoint}/api/{}", place.api_url());
        let explain = |trouble| self.explain(repo, LISTING, trouble);
        let answer = self.get(&url, None, true).map_err(explain)?;
        let mut text = Vec::new();
        let body = answer.response.into_body().into_reader().take(LISTING_LIMIT);
        let read = BufReader::new(body).read_to_end(&mut text);
        read.map_err(|error| explain(error.into()))?;
        let info: Listing = serde_json::from_slice(&text).map_err(|error| explain(error.into()))?;
        let names = info.siblings.into_iter().map(|file| file.rfilename);
        let mut names: Vec<String> = names.filter(|name| is_inside(name)).collect();
        names.sort_unstable();
        Ok(names)
    }

    /// The folder of a revision in the cache.
    fn snapshot(&self, kind: RepoKind, repo: &str, revision: Option<&str>) -> Option<PathBuf> {
        let root = self.repo_dir(kind, repo);
        let snapshots = root.join("snapshots");
        let noted = std::fs::read_to_string(root.join("refs").join(revision.unwrap_or(MAIN)));
        if let Ok(commit) = noted {
            return Some(snapshots.join(commit.trim())).filter(|path| path.is_dir());
        }
        if revision.is_some() {
            return None;
        }
        let folders = std::fs::read_dir(snapshots).ok()?.flatten().map(|entry| entry.path());
        let changed =
            |path: &PathBuf| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
        folders.filter(|path| path.is_dir()).max_by_key(changed)
    }
}

/// The files in a folder and below it, by their names relative to it (parts set apart by `/`),
/// sorted; none where the folder cannot be read.
pub fn files_under(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), String::new(), 0)];
    while let Some((folder, prefix, depth)) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let (path, name) = (entry.path(), format!("{prefix}{name}"));
            // Files of a snapshot are links, so that the target tells.
            if path.is_file() {
                found.push(name);
            } else if path.is_dir() && depth < DEPTH {
                folders.push((path, format!("{name}/"), depth + 1));
            }
        }
    }
    found.sort_unstable();
    found
}

/// Whether a name from the hub stays inside the folder it is put into.
pub(super) fn is_inside(name: &str) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    name.split('/').all(plain) && !name.contains(['\\', '\0', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_folder_are_passed_over() {
        for good in ["a.parquet", "data/train-00000-of-00002.parquet", "Math/..x"] {
            assert!(is_inside(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "../x", "a/../b", "a//b", "a\\b", "c:x"] {
            assert!(!is_inside(bad), "{bad}");
        }
    }
}
