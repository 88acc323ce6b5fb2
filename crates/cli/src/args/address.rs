//! Where one server is, for the commands that ask one server something.

use crate::Failure;
use crate::profiler::ConnectionArgs;
use clap::Args;
use servebench_http::BaseUrl;

/// Default port of SGLang.
const PORT: u16 = 30_000;

/// Where the server is.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Server")]
pub struct AddressArgs {
    /// Address of the server, as in http://127.0.0.1:30000; replaces --host and --port
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,

    /// Host of the server [default: this machine]
    #[arg(long)]
    pub host: Option<String>,

    /// Port of the server [default: 30000]
    #[arg(long)]
    pub port: Option<u16>,

    /// How it is reached.
    #[command(flatten)]
    pub connection: ConnectionArgs,
}

/// An address, and the flag that says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) flag: &'static str,
    /// Whether --host or --port were given and do nothing.
    pub(crate) ignores_host: bool,
}

impl AddressArgs {
    /// The address; without any, port 30000 of `host`.
    pub(crate) fn address(&self, host: &str) -> Result<Address, Failure> {
        let base = self.base_url.as_deref().filter(|url| !url.is_empty());
        if self.connection.simulate {
            let given = [
                ("--base-url", base.is_some()),
                ("--host", self.host.is_some()),
                ("--port", self.port.is_some()),
            ];
            if let Some((flag, _)) = given.iter().find(|(_, given)| *given) {
                return Err(Self::is_simulated(flag));
            }
        }
        let differs = self.host.as_deref().is_some_and(|given| given != host)
            || self.port.is_some_and(|port| port != PORT);
        let (flag, url) = if let Some(url) = base {
            ("--base-url", url.parse())
        } else {
            let (host, port) = (self.host.as_deref().unwrap_or(host), self.port);
            ("--host and --port", BaseUrl::from_host_port(host, port.unwrap_or(PORT)))
        };
        let url = url.map_err(|error| Failure::usage(format!("{flag}: {error}")))?;
        let ignores_host = base.is_some() && differs;
        Ok(Address { url: url.to_string(), flag, ignores_host })
    }

    /// The failure of a command line that says where a simulated server is.
    pub(crate) fn is_simulated(flag: &str) -> Failure {
        Failure::usage(format!("--simulate starts its own server: drop {flag}"))
            .hint("leave --simulate out to reach the server at that address")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    fn args(base: Option<&str>, host: Option<&str>, port: Option<u16>) -> AddressArgs {
        let text = |text: Option<&str>| text.map(str::to_owned);
        AddressArgs { base_url: text(base), host: text(host), port, ..AddressArgs::default() }
    }

    #[test]
    fn a_url_wins_over_host_and_port() {
        let address = |args: AddressArgs| {
            let address = args.address("localhost").unwrap();
            (address.url, address.flag, address.ignores_host)
        };
        let plain = address(args(None, None, None));
        assert_eq!(plain, ("http://localhost:30000".into(), "--host and --port", false));
        let host = address(args(Some(""), Some("::1"), Some(1)));
        assert_eq!(host, ("http://[::1]:1".into(), "--host and --port", false));
        let url = address(args(Some("h:5/"), Some("localhost"), None));
        assert_eq!(url, ("http://h:5".into(), "--base-url", false));
        assert!(address(args(Some("h:5"), None, Some(7))).2);
    }

    #[test]
    fn what_is_no_address_is_refused_by_its_flag() {
        let message = |args: AddressArgs| args.address("h").unwrap_err().error.to_string();
        assert!(message(args(Some("htp:/x"), None, None)).starts_with("--base-url: `htp:/x`"));
        assert!(message(args(None, Some("a b"), None)).starts_with("--host and --port: "));
        let simulated = ConnectionArgs { simulate: true, ..ConnectionArgs::default() };
        let simulated = AddressArgs { connection: simulated, ..args(None, None, Some(1)) };
        assert!(message(simulated).contains("drop --port"));
    }
}
