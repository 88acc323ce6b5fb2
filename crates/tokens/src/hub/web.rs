//! Files that are published outside the hub, at an address of their own.

use super::{CONNECT_LIMIT, Downloaded, Hub};
use crate::TokensError;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// How long a server may take to begin its answer.
const ANSWER_LIMIT: std::time::Duration = std::time::Duration::from_secs(30);
const PIECE: usize = 1 << 16;

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
        let config = ureq::Agent::config_builder()
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_recv_response(Some(ANSWER_LIMIT))
            .build();
        let response = ureq::Agent::new_with_config(config).get(self.url).call();
        let response = response.map_err(|error| match error {
            ureq::Error::StatusCode(404) => {
                TokensError::Missing { file: self.file.to_owned(), repo: self.folder.to_owned() }
            }
            error => self.failed(error.into()),
        })?;
        let total = response.headers().get("content-length");
        let total = total.and_then(|length| length.to_str().ok()?.parse().ok());
        let mut body = response.into_body().into_reader();
        let got = self.save(&mut body, total, path).map_err(|error| self.failed(error.into()))?;
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
    fn save(&self, body: &mut impl Read, total: Option<u64>, path: &Path) -> std::io::Result<u64> {
        let folder = path.parent().unwrap_or(Path::new(""));
        std::fs::create_dir_all(folder)?;
        let mut part = tempfile::NamedTempFile::new_in(folder)?;
        let mut piece = vec![0; PIECE];
        let mut got = 0;
        loop {
            let read = body.read(&mut piece)?;
            if read == 0 {
                break;
            }
            part.write_all(&piece[..read])?;
            got += read as u64;
            if let Some(on_progress) = &self.hub.on_progress {
                let file = self.file.to_owned();
                on_progress(&Downloaded { file, bytes: got, total: total.unwrap_or(got) });
            }
        }
        if total.is_none_or(|total| total == got) {
            part.persist(path)?;
        }
        Ok(got)
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
