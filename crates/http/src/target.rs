//! What every call to a server has in common.

use crate::BaseUrl;
use crate::connect::Spoken;
use crate::secrets::Secrets;
use crate::wire::Call;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use std::fmt;

/// A server and the headers that go with every call to it.
#[derive(Clone)]
pub struct Target {
    base: BaseUrl,
    headers: HeaderMap,
    secrets: Secrets,
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
        Self { base, headers, secrets: Secrets::default() }
    }

    /// Sends `name: value` with every call; a later value replaces an earlier one.
    pub fn with_header(mut self, name: &str, value: &str) -> Result<Self, HeaderError> {
        let error = || HeaderError { name: name.to_owned() };
        self.secrets.add_header(value);
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

    /// What must not be shown: the values of the headers that were added.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }

    /// The same, and what must not be shown of a proxy.
    pub(crate) fn secrets_with(&self, spoken: &Spoken) -> Secrets {
        let mut secrets = self.secrets.clone();
        if let Spoken::Forwarded(proxy) = spoken {
            secrets.add_all(proxy.secrets());
        }
        secrets
    }

    /// The call of `path` with these headers, in the words of what is spoken.
    pub(crate) fn call(
        &self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        spoken: &Spoken,
    ) -> Call {
        let uri = match spoken {
            Spoken::Http1 => self.base.path(path),
            Spoken::Forwarded(_) | Spoken::Http2 => {
                let scheme = if self.base.is_tls() { "https" } else { "http" };
                format!("{scheme}://{}{}", self.base.authority(), self.base.path(path))
            }
        };
        // The base was parsed as a URL and the paths are ours.
        let uri = Uri::try_from(uri).unwrap_or_else(|_| Uri::from_static("/"));
        match spoken {
            Spoken::Forwarded(proxy) => {
                if let Some(authorization) = proxy.authorization() {
                    headers.insert(header::PROXY_AUTHORIZATION, authorization.clone());
                }
            }
            Spoken::Http2 => {
                // It stands in the URI.
                headers.remove(header::HOST);
            }
            Spoken::Http1 => {}
        }
        Call::new(method, uri, headers)
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
