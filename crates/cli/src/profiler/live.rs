//! A server that is called outside of a benchmark, real or simulated.

use super::args::{ConnectionArgs, ServerKind};
use crate::exit::OrCode;
use crate::hidden::Hidden;
use crate::reach::{NetworkPlan, through};
use crate::{Code, Environment, Failure, Io};
use servebench_control::{Control, Family};
use servebench_http::{BaseUrl, Caller, Limits, Target, TcpConnect};
use servebench_sim::{CostModel, Sim, SimConfig, SimHandle, Timing};
use std::net::{IpAddr, UdpSocket};

/// A server and the ways to it.
pub(crate) struct LiveServer {
    pub(crate) target: Target,
    pub(crate) connect: TcpConnect,
    pub(crate) control: Control<TcpConnect>,
    /// Keeps the simulated server alive.
    pub(crate) simulated: Option<SimHandle>,
}

impl LiveServer {
    /// Finds the server at `url` (named by `flag` in messages) and, if wanted, asks what it is. With
    /// `--simulate` a server is started in its place.
    pub(crate) async fn reach(
        url: &str,
        flag: &str,
        kind: ServerKind,
        args: &ConnectionArgs,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let simulated = args.simulate.then(|| simulate(environment)).transpose()?;
        let address = simulated.as_ref().map_or_else(|| url.to_owned(), SimHandle::url);
        let base: BaseUrl = address
            .parse()
            .map_err(|error| Failure::new(Code::Usage, anyhow::anyhow!("{flag}: {error}")))?;
        let network = NetworkPlan::new(&args.network, args.insecure, environment);
        let connect = network.connect(&base, flag, Some(Limits::CONNECT)).await?;
        let target = target(base, args, environment)?;
        let family = match kind {
            ServerKind::Vllm => Family::Vllm,
            ServerKind::Sglang | ServerKind::Auto => Family::Sglang,
        };
        let mut control = Control::new(Caller::new(connect.clone(), target.clone()), family);
        if kind == ServerKind::Auto && simulated.is_none() {
            control = control.detect().await.map_err(|error| {
                Failure::new(Code::Server, error).hint(format!("check {flag}; is the server up?"))
            })?;
        }
        Ok(Self { target, connect, control, simulated })
    }

    /// Says through which proxy it is reached, if there is one: that is part of what is measured.
    pub(crate) fn say_proxy(&self, io: &Io) {
        if let Some(proxy) = self.connect.proxy() {
            io.say(format_args!("note: {}", through(proxy)));
        }
    }

    /// The same server, for someone else. A simulated one lives as long as the first.
    pub(crate) fn again(&self) -> Self {
        Self {
            target: self.target.clone(),
            connect: self.connect.clone(),
            control: self.control.clone(),
            simulated: None,
        }
    }

    /// Whether the server runs on this machine, as far as its address tells: then its files may be
    /// seen from here.
    pub(crate) async fn is_here(&self) -> bool {
        let base = self.target.base();
        let Ok(mut found) = tokio::net::lookup_host((base.host(), base.port())).await else {
            return false;
        };
        found.any(|address| is_own(address.ip()))
    }
}

/// Only an address of this machine can be bound.
fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// A header given on the command line wins over the environment's key.
fn target(
    base: BaseUrl,
    args: &ConnectionArgs,
    environment: &Environment,
) -> Result<Target, Failure> {
    let key = environment.authorization();
    let key = key.map(|key| ("Authorization".to_owned(), Hidden(key)));
    let mut target = Target::new(base);
    for (name, value) in key.iter().chain(&args.header) {
        target = target.with_header(name, value).or_code(Code::Usage)?;
    }
    Ok(target)
}

/// The built-in server: an engine model that writes traces of its steps, under the key that the
/// client would send.
fn simulate(environment: &Environment) -> Result<SimHandle, Failure> {
    let config = SimConfig {
        timing: Timing::Engine(CostModel::default()),
        api_key: environment.get("OPENAI_API_KEY").map(str::to_owned),
        profile_traces: true,
        ..SimConfig::default()
    };
    Sim::new(config).spawn_in_thread().or_code(Code::Server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_own() {
        assert!(is_own(IpAddr::from([127, 0, 0, 1])));
        // Set apart for documentation: no machine has it.
        assert!(!is_own(IpAddr::from([192, 0, 2, 1])));
    }
}
