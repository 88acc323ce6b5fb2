//! Which proxy, if any, stands between here and a server.

use crate::{BaseUrl, Secrets};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::HeaderValue;
use percent_encoding::percent_decode_str;
use std::fmt;
use std::net::IpAddr;
use url::{Host, Url};

/// What the usual variables say of proxies.
///
/// `http_proxy` counts for `http` servers, `https_proxy` for `https` ones, `all_proxy` where theirs is
/// not set; each also in capitals. `no_proxy` lists what is reached without: names (with all names
/// below them), addresses, networks (`10.0.0.0/8`), each with a port or without, or `*` for all.
/// A server on this machine (`localhost`, a loopback or unspecified address, a Unix socket) never has
/// a proxy.
///
/// ```
/// use servebench_http::{BaseUrl, Proxies};
///
/// let variables = [("HTTP_PROXY", "http://user:secret@proxy:3128"), ("NO_PROXY", ".internal")];
/// let proxies = Proxies::from_vars(|name| {
///     variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
/// });
/// let through = proxies.choose(&"http://model.example:8000".parse()?)?.expect("a proxy");
/// assert_eq!(through.to_string(), "proxy:3128");
/// assert!(proxies.choose(&"http://model.internal:8000".parse()?)?.is_none());
/// assert!(proxies.choose(&"http://localhost:8000".parse()?)?.is_none());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Setting>,
    https: Option<Setting>,
    exceptions: Vec<Exception>,
}

/// A variable's name and value, which may hold a password.
#[derive(Clone)]
struct Setting {
    variable: &'static str,
    value: String,
}

/// A proxy that speaks HTTP. Its credentials are shown nowhere.
#[derive(Clone)]
pub struct Proxy {
    host: String,
    port: u16,
    variable: &'static str,
    authorization: Option<HeaderValue>,
    secrets: Secrets,
}

/// Why a proxy cannot be used. Messages name the variable and never repeat its value, which may hold a
/// password.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyError {
    /// Not a URL.
    #[error("{variable} holds no URL of a proxy: {reason}")]
    Invalid {
        /// The variable.
        variable: &'static str,
        /// What the parser says.
        reason: String,
    },
    /// A proxy of another kind.
    #[error("{variable} names a proxy of the kind `{scheme}`; only http:// proxies are spoken to")]
    Scheme {
        /// The variable.
        variable: &'static str,
        /// Its scheme.
        scheme: String,
    },
}

impl Proxies {
    /// Reads the variables by way of a lookup function. An empty value counts as unset.
    pub fn from_vars(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let get = |names: &[&'static str]| {
            names.iter().find_map(|&variable| {
                let value = lookup(variable).filter(|value| !value.trim().is_empty())?;
                Some(Setting { variable, value })
            })
        };
        let all = || get(&["all_proxy", "ALL_PROXY"]);
        let exceptions = get(&["no_proxy", "NO_PROXY"]).map(|setting| setting.value);
        Self {
            http: get(&["http_proxy", "HTTP_PROXY"]).or_else(all),
            https: get(&["https_proxy", "HTTPS_PROXY"]).or_else(all),
            exceptions: exceptions.iter().flat_map(|list| list.split(',')).map(exception).collect(),
        }
    }

    /// The proxy through which the server at `base` is reached; `None` when there is none on the way.
    ///
    /// # Errors
    ///
    /// When the one that counts for this server is none that can be used.
    pub fn choose(&self, base: &BaseUrl) -> Result<Option<Proxy>, ProxyError> {
        let setting = if base.is_tls() { &self.https } else { &self.http };
        let Some(Setting { variable, value }) = setting else { return Ok(None) };
        if base.socket().is_some() || is_here(base.host()) {
            return Ok(None);
        }
        let host = base.host().trim_end_matches('.').to_ascii_lowercase();
        if self.exceptions.iter().any(|exception| exception.holds(&host, base.port())) {
            return Ok(None);
        }
        Proxy::parse(variable, value).map(Some)
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Values stay out: they may hold passwords.
        let name = |setting: &Option<Setting>| setting.as_ref().map(|setting| setting.variable);
        f.debug_struct("Proxies")
            .field("http", &name(&self.http))
            .field("https", &name(&self.https))
            .field("exceptions", &self.exceptions)
            .finish()
    }
}

impl Proxy {
    fn parse(variable: &'static str, value: &str) -> Result<Self, ProxyError> {
        let value = value.trim();
        let invalid = |reason: String| ProxyError::Invalid { variable, reason };
        let with_scheme =
            if value.contains("://") { value.to_owned() } else { format!("http://{value}") };
        let url = Url::parse(&with_scheme).map_err(|error| invalid(error.to_string()))?;
        if url.scheme() != "http" {
            return Err(ProxyError::Scheme { variable, scheme: url.scheme().to_owned() });
        }
        let host = match url.host() {
            Some(Host::Domain(name)) => name.to_owned(),
            Some(Host::Ipv4(ip)) => ip.to_string(),
            Some(Host::Ipv6(ip)) => ip.to_string(),
            None => return Err(invalid("it names no host".to_owned())),
        };
        let port = url.port_or_known_default().unwrap_or(80);
        let mut proxy =
            Self { host, port, variable, authorization: None, secrets: Secrets::default() };
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let password = url.password().map(decoded);
        if !url.username().is_empty() || password.is_some() {
            let user = decoded(url.username());
            let pair =
                BASE64_STANDARD.encode(format!("{user}:{}", password.as_deref().unwrap_or("")));
            let mut header = HeaderValue::try_from(format!("Basic {pair}"))
                .map_err(|error| invalid(error.to_string()))?;
            header.set_sensitive(true);
            proxy.authorization = Some(header);
            proxy.secrets.add(&pair);
            proxy.secrets.add(password.as_deref().unwrap_or(""));
        }
        Ok(proxy)
    }

    /// Its host, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The variable that names it.
    pub fn variable(&self) -> &'static str {
        self.variable
    }

    /// What it is to be told by `Proxy-Authorization`.
    pub(crate) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// What must not be shown of it.
    pub(crate) fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            return write!(f, "[{}]:{}", self.host, self.port);
        }
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The same proxy, with the same credentials.
impl PartialEq for Proxy {
    fn eq(&self, other: &Self) -> bool {
        let all = |proxy: &Self| {
            (proxy.host.clone(), proxy.port, proxy.variable, proxy.authorization.clone())
        };
        all(self) == all(other)
    }
}

impl Eq for Proxy {}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Proxy").field(&format_args!("{self}")).finish()
    }
}

/// Whether a host is this machine.
fn is_here(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    match name.parse::<IpAddr>() {
        Ok(ip) => ip.to_canonical().is_loopback() || ip.is_unspecified(),
        Err(_) => name == "localhost" || name.ends_with(".localhost"),
    }
}

/// One item of `no_proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Exception {
    /// Everything.
    All,
    /// The addresses that share so many first bits with this one, at any port or one.
    Network(IpAddr, u8, Option<u16>),
    /// A name and all names below it, at any port or one.
    Name(String, Option<u16>),
}

fn exception(item: &str) -> Exception {
    let item = item.trim().to_ascii_lowercase();
    if item == "*" {
        return Exception::All;
    }
    if let Some((ip, bits)) = item.split_once('/')
        && let (Ok(ip), Ok(bits)) = (ip.parse::<IpAddr>(), bits.parse())
    {
        return Exception::Network(ip, bits, None);
    }
    let bare = |text: &str| text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    if let Ok(ip) = bare(&item) {
        return Exception::Network(ip, u8::MAX, None);
    }
    let (host, port) = match item.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (item.as_str(), None),
    };
    if let Ok(ip) = bare(host) {
        return Exception::Network(ip, u8::MAX, port);
    }
    let name = host.strip_prefix('*').unwrap_or(host).trim_matches('.');
    Exception::Name(name.to_owned(), port)
}

impl Exception {
    /// Whether it covers `host`, a name in small letters or an address.
    fn holds(&self, host: &str, at: u16) -> bool {
        match self {
            Self::All => true,
            Self::Network(network, bits, port) => {
                let ip = host.parse::<IpAddr>();
                port.is_none_or(|port| port == at)
                    && ip.is_ok_and(|ip| shares(ip.to_canonical(), network.to_canonical(), *bits))
            }
            Self::Name(name, port) => {
                let below = |host: &str| host.strip_suffix(name.as_str()).map(str::to_owned);
                port.is_none_or(|port| port == at)
                    && !name.is_empty()
                    && below(host).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
        }
    }
}

/// Whether the first `bits` bits of two addresses are the same; all of them for what is too many.
fn shares(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let (one, other, width) = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => {
            (u128::from(one.to_bits()), u128::from(other.to_bits()), 32)
        }
        (IpAddr::V6(one), IpAddr::V6(other)) => (one.to_bits(), other.to_bits(), 128),
        _ => return false,
    };
    let rest = width - u32::from(bits).min(width);
    one.checked_shr(rest).unwrap_or(0) == other.checked_shr(rest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn proxies(variables: &[(&str, &str)]) -> Proxies {
        Proxies::from_vars(|name| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn chosen(variables: &[(&str, &str)], base: &str) -> Option<String> {
        let proxy = proxies(variables).choose(&base.parse().unwrap()).unwrap();
        proxy.map(|proxy| proxy.to_string())
    }

    #[test]
    fn the_scheme_chooses_the_variable_and_small_letters_come_first() {
        let variables = [
            ("HTTP_PROXY", "loud:1"),
            ("http_proxy", "quiet:1"),
            ("HTTPS_PROXY", "http://secure:2/"),
            ("ALL_PROXY", "any:3"),
        ];
        assert_eq!(chosen(&variables, "http://h").as_deref(), Some("quiet:1"));
        assert_eq!(chosen(&variables, "https://h").as_deref(), Some("secure:2"));
        assert_eq!(chosen(&variables[3..], "http://h").as_deref(), Some("any:3"));
        assert_eq!(chosen(&variables[3..], "https://h").as_deref(), Some("any:3"));
        assert_eq!(chosen(&[("HTTP_PROXY", " ")], "http://h"), None);
        assert_eq!(chosen(&[("http_proxy", "[::1]:8")], "http://h").as_deref(), Some("[::1]:8"));
        assert_eq!(chosen(&[("http_proxy", "http://p")], "http://h").as_deref(), Some("p:80"));
    }

    #[test]
    fn this_machine_is_never_reached_by_way_of_another() {
        for here in [
            "localhost:1",
            "http://LOCALHOST./",
            "a.localhost",
            "127.0.0.1:1",
            "http://127.9.9.9",
            "[::1]:1",
            "0.0.0.0:30000",
            "http://[::]:1",
            "http://[::ffff:127.0.0.1]:1",
            "unix:/run/s.sock",
        ] {
            assert_eq!(chosen(&[("http_proxy", "p:1")], here), None, "{here}");
        }
    }

    #[test]
    fn exceptions_are_names_addresses_and_networks() {
        for (list, hosts, others) in [
            ("*", &["http://h", "http://8.8.8.8"][..], &[][..]),
            (
                "example.com",
                &["http://example.com", "http://a.EXAMPLE.com:8"],
                &["http://badexample.com"],
            ),
            (
                ".example.com",
                &["http://a.example.com", "http://example.com"],
                &["http://example.org"],
            ),
            ("*.example.com,h", &["http://a.example.com", "http://h."], &["http://i"]),
            ("h:8000", &["http://h:8000"], &["http://h:8001"]),
            (
                "10.0.0.0/8, 192.168.1.1",
                &["http://10.9.8.7", "http://192.168.1.1:5"],
                &["http://11.0.0.1", "http://192.168.1.2", "http://[fd00::1]"],
            ),
            (
                "fd00::/8,[fe80::1]:7",
                &["http://[fd12::1]", "http://[fe80::1]:7"],
                &["http://[fe80::1]:8"],
            ),
            ("0.0.0.0/0", &["http://1.2.3.4"], &["http://[fd00::1]", "http://h"]),
            (" , .,:", &[], &["http://h"]),
        ] {
            let variables = [("http_proxy", "p:1"), ("NO_PROXY", list)];
            for host in hosts {
                assert_eq!(chosen(&variables, host), None, "{list}: {host}");
            }
            for host in others {
                assert_eq!(chosen(&variables, host).as_deref(), Some("p:1"), "{list}: {host}");
            }
        }
    }

    #[test]
    fn credentials_become_a_header_and_are_shown_nowhere() {
        let base = "http://h".parse().unwrap();
        let variables =
            [("HTTP_PROXY", "http://user:p%40ss-word@p:1"), ("HTTPS_PROXY", "u:secret-1")];
        let proxies = proxies(&variables);
        let proxy = proxies.choose(&base).unwrap().unwrap();
        // "user:p@ss-word" in base64.
        assert_eq!(proxy.authorization().unwrap(), "Basic dXNlcjpwQHNzLXdvcmQ=");
        let text = "p@ss-word is dXNlcjpwQHNzLXdvcmQ=";
        assert_eq!(proxy.secrets().hidden(text), "*** is ***");
        let shown = format!("{proxies:?} {proxy:?} {proxy}");
        assert!(!shown.contains("word") && !shown.contains("secret"), "{shown}");
        assert_eq!((proxy.host(), proxy.port(), proxy.variable()), ("p", 1, "HTTP_PROXY"));
    }

    #[test]
    fn what_cannot_be_used_is_said_without_its_value() {
        for (value, word) in [
            ("socks5://user:hunter22@p:1", "`socks5`"),
            ("https://user:hunter22@p:1", "`https`"),
            ("http://user:hunter22@p:99999", "port"),
            ("http://user:hunter22@", "host"),
        ] {
            let error = proxies(&[("ALL_PROXY", value)]).choose(&"https://h".parse().unwrap());
            let said = error.unwrap_err().to_string();
            assert!(said.contains("ALL_PROXY") && said.contains(word), "{said}");
            assert!(!said.contains("hunter22"), "{said}");
            // Where it does not count it does no harm.
            assert_eq!(chosen(&[("ALL_PROXY", value)], "http://127.0.0.1"), None);
        }
    }

    proptest! {
        #[test]
        fn any_variables_are_read_or_refused(
            proxy in "[a-z:/@.%0-9\\[\\]]{0,30}", list in "[a-z:/*.,0-9\\[\\]]{0,30}",
            host in "[a-z0-9.]{1,9}",
        ) {
            crate::fuzzing::proxy_settings(format!("{proxy}\n{list}\nhttp://{host}").as_bytes());
        }
    }
}
