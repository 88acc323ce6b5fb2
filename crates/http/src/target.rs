//! What every call to a server has in common.

use crate::BaseUrl;
use http::{HeaderMap, HeaderName, HeaderValue, Uri, header};
use std::fmt;

/// A server and the headers that go with every call to it.
#[derive(Clone)]
pub struct Target {
    base: BaseUrl,
    headers: HeaderMap,
}

/// Why a header cannot be sent. The value stays out of the message: it may be a secret.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("header `{name}` has a name or value that HTTP does not allow")]
pub struct HeaderError {
    /// Name of the header.
    pub name: String,
}

impl Target {
    /// A server without extra headers.
    pub fn new(base: BaseUrl) -> Self {
        let mut headers = HeaderMap::new();
        // An authority that was parsed as part of a URL is a valid header value.
        if let Ok(host) = HeaderValue::from_str(base.authority()) {
            headers.insert(header::HOST, host);
        }
        let agent = concat!("servebench/", env!("CARGO_PKG_VERSION"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static(agent));
        Self { base, headers }
    }

    /// Sends `name: value` with every call; a later value replaces an earlier one.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, HeaderError> {
        let error = || HeaderError { name: name.to_owned() };
        let key = HeaderName::try_from(name).map_err(|_| error())?;
        let mut value = HeaderValue::from_str(value).map_err(|_| error())?;
        value.set_sensitive(true);
        self.headers.insert(key, value);
        Ok(self)
    }

    /// The server's base URL.
    pub fn base(&self) -> &BaseUrl {
        &self.base
    }

    pub(crate) fn uri(&self, path: &str) -> Uri {
        // The prefix was parsed as part of a URL and the paths are ours.
        Uri::try_from(self.base.path(path)).unwrap_or_else(|_| Uri::from_static("/"))
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    pub(crate) fn headers_for_json(&self) -> HeaderMap {
        let mut headers = self.headers.clone();
        headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        headers
    }

    /// Headers for bodies of another kind: only its own name tells how they are to be read.
    pub(crate) fn headers_for(&self, kind: &str) -> HeaderMap {
        let mut headers = self.headers.clone();
        if let Ok(kind) = HeaderValue::from_str(kind) {
            headers.insert(header::CONTENT_TYPE, kind);
        }
        headers
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("base", &self.base).finish_non_exhaustive()
    }
}
