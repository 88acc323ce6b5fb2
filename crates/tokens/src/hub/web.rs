//! Files that are published outside the hub, at an address of their own.

use super::Hub;
use super::transfer::Trouble;
use crate::TokensError;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use ureq::Body;

impl Hub {
    /// The file at `url`, from the hub's cache, else downloaded into it, in a folder of its own.
    ///
    /// The hub's token is not sent there. What is in the cache is used as it is.
    pub fn fetch_url(&self, url: &str) -> Result<PathBuf, TokensError> {
        let path = self.place_of(url);
        if path.is_file() {
            return Ok(path);
        }
        let (folder, file) = url.rsplit_once('/').unwrap_or(("", url));
        if self.config.offline {
            return Err(TokensError::Offline {
                file: file.to_owned(),
                repo: folder.to_owned(),
                cache: self.config.cache_dir.clone(),
            });
        }
        let download = Download { hub: self, url, file, folder };
        download.to(&path)?;
        Ok(path)
    }

    /// Two files of the same name are told apart by their addresses.
    fn place_of(&self, url: &str) -> PathBuf {
        let mut name = Sha256::digest(url).iter().take(8).fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let file = url.rsplit('/').next().unwrap_or_default();
        name.extend(['-']);
        name.extend(file.chars().filter(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)));
        self.config.cache_dir.join("servebench").join(name)
    }
}

struct Download<'a> {
    hub: &'a Hub,
    url: &'a str,
    file: &'a str,
    folder: &'a str,
}

impl Download<'_> {
    /// Downloads beside `path` and moves the whole file there.
    fn to(&self, path: &Path) -> Result<(), TokensError> {
        let answer =
            self.hub.get(self.url, None, false).map_err(|trouble| self.explain(trouble))?;
        let total = answer.response.headers().get("content-length");
        let total = total.and_then(|length| length.to_str().ok()?.parse().ok());
        let body = answer.response.into_body();
        let got = self.save(body, total, path).map_err(|trouble| self.explain(trouble))?;
        match total {
            Some(want) if want != got => Err(TokensError::Truncated {
                file: self.file.to_owned(),
                repo: self.folder.to_owned(),
                got,
                want,
            }),
            _ => Ok(()),
        }
    }

    /// Bytes that came; the file is in its place if they are all that were announced.
    fn save(&self, body: Body, total: Option<u64>, path: &Path) -> Result<u64, Trouble> {
        let folder = path.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder)?;
        let mut part = temporary_in(folder)?;
        let got = self.hub.pour(self.file, body, &mut part, 0, total)?;
        if total.is_none_or(|total| total == got) {
            part.persist(path)?;
        }
        Ok(got)
    }

    fn explain(&self, trouble: Trouble) -> TokensError {
        match trouble {
            Trouble::Status(status @ (401 | 403)) => self.failed(format!("HTTP {status}").into()),
            trouble => match self.hub.explain(self.folder, self.file, trouble) {
                TokensError::Download { source, .. } => self.failed(source),
                other => other,
            },
        }
    }

    fn failed(&self, source: Box<dyn std::error::Error + Send + Sync>) -> TokensError {
        let scheme = self.url.find("://").map_or(0, |at| at + 3);
        let host = self.url[scheme..].find('/').map_or(self.url.len(), |at| scheme + at);
        TokensError::Download {
            file: self.file.into(),
            repo: self.folder.get(host + 1..).unwrap_or_default().into(),
            endpoint: self.url[..host].into(),
            cache: self.hub.config.cache_dir.as_path().into(),
            source,
        }
    }
}

/// A file that becomes another, with the permissions that any new file of the user's has.
fn temporary_in(folder: &Path) -> std::io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}
