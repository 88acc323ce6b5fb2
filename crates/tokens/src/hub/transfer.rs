//! Bytes from elsewhere: redirects, whom the token is shown, and how much is taken.

use super::{CONNECT_LIMIT, Downloaded, Hub};
use crate::TokensError;
use std::error::Error;
use std::io::{Read, Write};
use std::time::Duration;
use ureq::http::{HeaderMap, Response, header};
use ureq::{Agent, Body};
use url::Url;

/// How long a server may take to begin its answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Redirects that are followed.
const REDIRECTS: usize = 10;
const PIECE: usize = 1 << 16;

/// Why there is no answer, or not all of it.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The server's status.
    Status(u16),
    /// More bytes than may be, here or announced.
    TooLarge,
    /// Anything else.
    Other(Box<dyn Error + Send + Sync>),
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Trouble {
    fn from(error: E) -> Self {
        Self::Other(error.into())
    }
}

/// An answer, and what was told of the file on the way to it.
pub(super) struct Answer {
    pub(super) response: Response<Body>,
    /// The headers of the first answer that was no hint at another place on the same server.
    pub(super) told: HeaderMap,
}

impl Hub {
    /// GETs `url`, or a part of it, wherever redirects lead. The token, if it is to be used, is shown to
    /// the hub's own server only.
    pub(super) fn get(
        &self,
        url: &str,
        range: Option<&str>,
        with_token: bool,
    ) -> Result<Answer, Trouble> {
        let config = Agent::config_builder()
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_recv_response(Some(ANSWER_LIMIT))
            .max_redirects(0)
            .build();
        let agent = Agent::new_with_config(config);
        let home = Url::parse(&self.config.endpoint)?.origin();
        let token = self.config.token.as_deref().filter(|_| with_token);
        let mut at = Url::parse(url)?;
        let mut told = None;
        for _ in 0..=REDIRECTS {
            let mut request = agent.get(at.as_str());
            if let Some(token) = token.filter(|_| at.origin() == home) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            if let Some(range) = range {
                request = request.header(header::RANGE, range);
            }
            let response = match request.call() {
                Err(ureq::Error::StatusCode(status)) => return Err(Trouble::Status(status)),
                response => response?,
            };
            let headers = response.headers();
            if !response.status().is_redirection() {
                let told = told.unwrap_or_else(|| headers.clone());
                return Ok(Answer { response, told });
            }
            let to = headers.get(header::LOCATION).ok_or("a redirect without a target")?;
            let to = to.to_str()?;
            if Url::parse(to).is_ok() {
                told.get_or_insert_with(|| headers.clone());
            }
            at = at.join(to)?;
            if !matches!(at.scheme(), "http" | "https") {
                return Err("a redirect to something that is not http".into());
            }
        }
        Err("too many redirects".into())
    }

    /// Writes all of `body` behind the `got` bytes that are there; how many there are then. `total` were
    /// announced.
    pub(super) fn pour(
        &self,
        file: &str,
        body: Body,
        to: &mut impl Write,
        mut got: u64,
        total: Option<u64>,
    ) -> Result<u64, Trouble> {
        if total.is_some_and(|total| total > self.config.size_limit) {
            return Err(Trouble::TooLarge);
        }
        let mut body = body.into_reader();
        let mut piece = vec![0; PIECE];
        loop {
            let read = body.read(&mut piece)?;
            if read == 0 {
                return Ok(got);
            }
            got += read as u64;
            // Whatever was announced: what comes is what fills the disk.
            if got > self.config.size_limit {
                return Err(Trouble::TooLarge);
            }
            to.write_all(&piece[..read])?;
            if let Some(on_progress) = &self.on_progress {
                let total = total.unwrap_or(got);
                on_progress(&Downloaded { file: file.to_owned(), bytes: got, total });
            }
        }
    }

    /// What trouble with a file means.
    pub(super) fn explain(&self, repo: &str, file: &str, trouble: Trouble) -> TokensError {
        let (file_name, repo_name) = (file.to_owned(), repo.to_owned());
        match trouble {
            Trouble::Status(404) => TokensError::Missing { file: file_name, repo: repo_name },
            Trouble::Status(status @ (401 | 403)) => {
                TokensError::Denied { file: file_name, repo: repo_name, status }
            }
            Trouble::Status(status) => {
                self.unavailable(repo, file, format!("HTTP {status}").into())
            }
            Trouble::TooLarge => TokensError::TooLarge {
                file: file_name,
                repo: repo_name,
                limit: self.config.size_limit,
            },
            Trouble::Other(error) => self.unavailable(repo, file, error),
        }
    }
}
