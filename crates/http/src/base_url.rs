//! Where a server is: one rule for every call that is made to it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use url::{Host, Url};

/// The base URL of a server, as in `http://127.0.0.1:30000` or `https://gateway/team-a`.
///
/// Paths are appended to its path: a trailing slash is dropped, and so is a trailing `/v1`, since
/// the endpoints' paths bring their own. Without a scheme, `http` is meant. A server behind a Unix
/// socket has `unix:` and the socket's path, as in `unix:/run/server.sock`; HTTP is spoken over it.
///
/// ```
/// use servebench_http::BaseUrl;
///
/// let base: BaseUrl = "gateway:8080/team-a/".parse()?;
/// assert_eq!(base.path("/v1/chat/completions"), "/team-a/v1/chat/completions");
/// assert_eq!(base.to_string(), "http://gateway:8080/team-a");
/// assert!("http://user:secret@host".parse::<BaseUrl>().is_err());
/// # Ok::<(), servebench_http::BaseUrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    tls: bool,
    host: String,
    port: u16,
    prefix: String,
    authority: String,
    socket: Option<PathBuf>,
}

/// Why a base URL is refused. Messages never repeat the URL's credentials.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BaseUrlError {
    /// Not a URL at all.
    #[error("`{url}` is not a URL: {reason}")]
    Invalid {
        /// What was given.
        url: String,
        /// What the parser says.
        reason: String,
    },
    /// A scheme other than `http`, `https` and `unix`.
    #[error("`{url}` has scheme `{scheme}`; only http, https and unix are spoken")]
    Scheme {
        /// What was given.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// User name or password inside the URL.
    #[error(
        "the base URL holds credentials, which would end up in logs and results; pass them with --header Authorization=..."
    )]
    Credentials,
    /// A query or fragment, which cannot be kept when paths are appended.
    #[error("`{url}` has a query or fragment, to which no path can be appended")]
    Query {
        /// What was given, without the query.
        url: String,
    },
}

impl BaseUrl {
    /// `http://host:port`; an IPv6 literal may come with or without brackets.
    pub fn from_host_port(host: &str, port: u16) -> Result<Self, BaseUrlError> {
        if host.contains(':') && !host.starts_with('[') {
            format!("http://[{host}]:{port}").parse()
        } else {
            format!("http://{host}:{port}").parse()
        }
    }

    /// The server behind the Unix socket at `path`.
    fn from_socket(path: &str) -> Result<Self, BaseUrlError> {
        if path.is_empty() || path.contains('\0') {
            let (url, reason) = (format!("unix:{path}"), "no path of a socket".to_owned());
            return Err(BaseUrlError::Invalid { url, reason });
        }
        Ok(Self {
            tls: false,
            host: "localhost".into(),
            port: 80,
            prefix: String::new(),
            authority: "localhost".into(),
            socket: Some(path.into()),
        })
    }

    /// Where the Unix socket is, if that is how the server is reached.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// True for `https`.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Host name or address, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Port, the scheme's default if none was given.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of the `Host` header.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// The request path of the endpoint `path` (which begins with `/`).
    pub fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }

    /// The whole URL of the endpoint `path`.
    pub fn url(&self, path: &str) -> String {
        let colon = if self.socket.is_some() && !path.is_empty() { ":" } else { "" };
        format!("{self}{colon}{path}")
    }
}

impl FromStr for BaseUrl {
    type Err = BaseUrlError;

    fn from_str(text: &str) -> Result<Self, BaseUrlError> {
        let text = text.trim();
        if let Some(path) = text.strip_prefix("unix:") {
            // With an empty host or without any.
            return Self::from_socket(path.strip_prefix("//").unwrap_or(path));
        }
        let invalid = |reason: String| BaseUrlError::Invalid {
            // Credentials stand before an `@`: what is not understood is shown only without one.
            url: if text.contains('@') { "…".into() } else { text.to_owned() },
            reason,
        };
        let with_scheme = if text.contains("://") {
            text.to_owned()
        } else if text.split('/').next().is_some_and(|host| host.ends_with(':')) {
            // Not a host whose port is missing, but a scheme, as in `htp:/host`.
            return Err(invalid(
                "expected http://HOST:PORT, https://HOST:PORT or unix:PATH".into(),
            ));
        } else {
            format!("http://{text}")
        };
        let url = Url::parse(&with_scheme).map_err(|error| invalid(error.to_string()))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BaseUrlError::Credentials);
        }
        let shown = text.split(['?', '#']).next().unwrap_or_default().to_owned();
        if url.query().is_some() || url.fragment().is_some() {
            return Err(BaseUrlError::Query { url: shown });
        }
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            scheme => {
                return Err(BaseUrlError::Scheme { url: shown, scheme: scheme.to_owned() });
            }
        };
        let (host, bracketed) = match url.host() {
            Some(Host::Domain(name)) => (name.to_owned(), name.to_owned()),
            Some(Host::Ipv4(ip)) => (ip.to_string(), ip.to_string()),
            Some(Host::Ipv6(ip)) => (ip.to_string(), format!("[{ip}]")),
            None => {
                return Err(BaseUrlError::Invalid { url: shown, reason: "no host".into() });
            }
        };
        let authority = url.port().map_or(bracketed.clone(), |port| format!("{bracketed}:{port}"));
        let prefix = url.path().trim_end_matches('/');
        let prefix = prefix.strip_suffix("/v1").unwrap_or(prefix).trim_end_matches('/').to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        Ok(Self { tls, host, port, prefix, authority, socket: None })
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(socket) = &self.socket {
            return write!(f, "unix:{}", socket.display());
        }
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_reaches_the_same_endpoint() {
        for (base, want) in [
            ("http://h:1", "/v1/chat/completions"),
            ("http://h:1/", "/v1/chat/completions"),
            ("http://h:1/pre/fix", "/pre/fix/v1/chat/completions"),
            ("http://h:1/pre/fix/", "/pre/fix/v1/chat/completions"),
            ("http://h:1/v1", "/v1/chat/completions"),
            ("http://h:1/v1/", "/v1/chat/completions"),
            ("h:1", "/v1/chat/completions"),
        ] {
            let base: BaseUrl = base.parse().unwrap();
            assert_eq!(base.path("/v1/chat/completions"), want, "{base}");
            assert_eq!((base.host(), base.port()), ("h", 1));
        }
    }

    #[test]
    fn a_socket_is_reached_by_its_path() {
        for text in ["unix:/run/s.sock", "unix:///run/s.sock", " unix:/run/s.sock "] {
            let base: BaseUrl = text.parse().unwrap();
            assert_eq!(base.socket(), Some(Path::new("/run/s.sock")));
            assert_eq!((base.path("/generate").as_str(), base.is_tls()), ("/generate", false));
            assert_eq!(base.to_string(), "unix:/run/s.sock");
            assert_eq!(base.url("/generate"), "unix:/run/s.sock:/generate");
            assert_eq!(base.to_string().parse(), Ok(base));
        }
        assert_eq!("unix:s.sock".parse::<BaseUrl>().unwrap().socket(), Some(Path::new("s.sock")));
        assert_eq!("h:1".parse::<BaseUrl>().unwrap().socket(), None);
    }

    #[test]
    fn ipv6_literals_are_bracketed_once() {
        for host in ["::1", "[::1]"] {
            let base = BaseUrl::from_host_port(host, 8000).unwrap();
            assert_eq!(base.to_string(), "http://[::1]:8000");
            assert_eq!((base.host(), base.authority()), ("::1", "[::1]:8000"));
        }
    }

    #[test]
    fn refused_urls_say_why_and_keep_secrets() {
        let refuse = |text: &str| text.parse::<BaseUrl>().unwrap_err().to_string();
        assert!(refuse("ftp://h").contains("scheme `ftp`"));
        assert!(refuse("http://h:1?api-version=2").contains("query"));
        for scheme in ["htp:/x", "http:/h:1", "h:"] {
            let said = refuse(scheme);
            assert!(said.contains(scheme) && said.contains("expected http://HOST:PORT"), "{said}");
        }
        assert!(refuse("http://h:99999").contains("port"));
        assert!(refuse("unix:").contains("no path of a socket"));
        assert!(refuse("unix://").contains("no path of a socket"));
        for secret in ["http://user:pw@h:1", "http://user:pw@h:99999"] {
            assert!(!refuse(secret).contains("pw"), "{}", refuse(secret));
        }
    }
}
