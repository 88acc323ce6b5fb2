//! The way to a server, as planned: proxies, certificates, and the one lookup of its name.

use crate::args::NetworkArgs;
use crate::{Code, Environment, Failure};
use serde::Serialize;
use servebench_http::{BaseUrl, Identity, Proxies, Proxy, TcpConnect, TlsOptions, Way};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The way to the servers of a run.
#[derive(Clone, Debug, Serialize)]
pub struct NetworkPlan {
    /// Whether proxies are passed by.
    pub no_proxy: bool,
    /// Further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The client's own certificate.
    pub client_cert: Option<PathBuf>,
    /// Its key.
    pub client_key: Option<PathBuf>,
    /// Trust any certificate.
    pub insecure: bool,
    /// Speak HTTP/2.
    pub http2: bool,
    #[serde(skip)]
    proxies: Proxies,
}

impl NetworkPlan {
    pub(crate) fn new(args: &NetworkArgs, insecure: bool, environment: &Environment) -> Self {
        let from_environment = || {
            let names = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"];
            names.iter().find_map(|name| environment.get(name)).map(PathBuf::from)
        };
        let proxies = if args.no_proxy {
            Proxies::default()
        } else {
            Proxies::from_vars(|name| environment.get(name).map(str::to_owned))
        };
        Self {
            no_proxy: args.no_proxy,
            ca_file: args.ca_file.clone().or_else(from_environment),
            client_cert: args.client_cert.clone(),
            client_key: args.client_key.clone().or_else(|| args.client_cert.clone()),
            insecure,
            http2: args.http2,
            proxies,
        }
    }

    /// Finds the server at `base`, an address that `flags` are responsible for.
    pub(crate) async fn connect(
        &self,
        base: &BaseUrl,
        flags: &str,
        limit: Option<Duration>,
    ) -> Result<TcpConnect, Failure> {
        let way = self.way(base)?;
        let place = match &way.proxy {
            Some(proxy) => format!("the proxy {proxy} ({})", proxy.variable()),
            None => base.to_string(),
        };
        let resolving = TcpConnect::resolve_by(base, &way);
        let found = match limit {
            Some(limit) => tokio::time::timeout(limit, resolving).await.unwrap_or_else(|_| {
                let words = format!("no answer within {limit:?} (--connect-timeout)");
                Err(std::io::Error::new(std::io::ErrorKind::TimedOut, words))
            }),
            None => resolving.await,
        };
        found.map_err(|error| {
            let error = anyhow::Error::new(error).context(format!("cannot find {place}"));
            Failure::new(Code::Server, error).hint(match &way.proxy {
                Some(_) => "--no-proxy goes straight to the server".to_owned(),
                None => format!("check {flags}"),
            })
        })
    }

    fn way(&self, base: &BaseUrl) -> Result<Way, Failure> {
        let proxy = self.proxies.choose(base).map_err(|error| {
            Failure::new(Code::Usage, error).hint("--no-proxy goes straight to the server")
        })?;
        let mut tls = TlsOptions { insecure: self.insecure, ..TlsOptions::default() };
        if base.is_tls() {
            let ca = "--ca-file, SSL_CERT_FILE or REQUESTS_CA_BUNDLE";
            tls.ca_pem = self.ca_file.as_deref().map(|file| read(file, ca)).transpose()?;
            if let (Some(certificate), Some(key)) = (&self.client_cert, &self.client_key) {
                tls.identity = Some(Identity {
                    certificate_pem: read(certificate, "--client-cert")?,
                    key_pem: read(key, "--client-key")?,
                });
            }
        }
        Ok(Way { tls, proxy, http2: self.http2 })
    }

    /// Says which proxies the calls to these servers go through: it changes what is measured.
    pub(crate) fn notes<'a>(
        &self,
        servers: impl IntoIterator<Item = &'a BaseUrl>,
    ) -> impl Iterator<Item = String> {
        let chosen =
            servers.into_iter().filter_map(|base| self.proxies.choose(base).ok().flatten());
        let notes: BTreeSet<String> = chosen.map(|proxy| through(&proxy)).collect();
        notes.into_iter()
    }
}

/// What is said of a proxy on the way.
pub(crate) fn through(proxy: &Proxy) -> String {
    let variable = proxy.variable();
    format!(
        "through the proxy {proxy} ({variable}), which is in every time; --no-proxy goes straight"
    )
}

fn read(file: &Path, flags: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(file).map_err(|error| {
        let error = anyhow::Error::new(error).context(file.display().to_string());
        Failure::new(Code::Data, error).hint(format!("the file comes from {flags}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_told_once_and_without_their_passwords() {
        let environment =
            Environment::from_pairs([("HTTP_PROXY", "http://me:hidden-pass@proxy:3128")]);
        let plan = NetworkPlan::new(&NetworkArgs::default(), false, &environment);
        let bases = ["http://a", "http://b", "https://c", "http://localhost:1"];
        let bases = bases.map(|base| base.parse::<BaseUrl>().unwrap());
        let notes: Vec<String> = plan.notes(&bases).collect();
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("proxy:3128 (HTTP_PROXY)"), "{notes:?}");
        let shown = format!("{plan:?} {notes:?} {}", serde_json::to_string(&plan).unwrap());
        assert!(!shown.contains("hidden"), "{shown}");

        let straight = NetworkArgs { no_proxy: true, ..NetworkArgs::default() };
        let plan = NetworkPlan::new(&straight, false, &environment);
        assert_eq!(plan.notes(&bases).count(), 0);
    }
}
