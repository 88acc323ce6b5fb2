//! The server that is measured, real or simulated.

use crate::exit::OrCode;
use crate::{Code, Environment, Failure, Io, Plan};
use servebench_backends::BackendKind;
use servebench_control::{Control, Family};
use servebench_http::{BaseUrl, Caller, Stamps, Target, TcpConnect};
use servebench_sim::{CostModel, Sim, SimConfig, SimHandle, Timing};

/// A server and the ways to it.
pub(crate) struct Server {
    pub(crate) target: Target,
    pub(crate) connect: TcpConnect,
    pub(crate) control: Control<TcpConnect>,
    /// Further servers to which requests are dealt.
    pub(crate) others: Vec<Reached>,
    /// The workers whose profilers are used in place of the server's, as the plan has them.
    pub(crate) workers: Vec<Result<Control<TcpConnect>, Failure>>,
    /// Keeps the simulated server alive.
    _simulated: Option<SimHandle>,
}

/// The ways to one server.
pub(crate) struct Reached {
    pub(crate) target: Target,
    pub(crate) connect: TcpConnect,
    pub(crate) control: Control<TcpConnect>,
}

impl Reached {
    /// Looks up the server's name.
    async fn new(base: BaseUrl, plan: &Plan, environment: &Environment) -> Result<Self, Failure> {
        let flags = "--base-url, or --host and --port";
        let connect = plan.network.connect(&base, flags, plan.limits.connect()).await?;
        let connect = connect.with_stamps(plan.load.receive_stamps.into());

        let mut target = Target::new(base);
        let key = environment.authorization();
        let keyed = key.iter().map(|key| ("Authorization", key.as_str()));
        let given = plan.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        // A header given on the command line wins over the environment's key.
        for (name, value) in keyed.chain(given) {
            target = target.with_header(name, value).or_code(Code::Usage)?;
        }
        let control =
            Control::new(Caller::new(connect.clone(), target.clone()), family(plan.backend))
                .with_ready_path(plan.backend.info().ready_path);
        Ok(Self { target, connect, control })
    }
}

impl Server {
    /// Starts the simulated server if it is to be measured, and looks up the server's name.
    pub(crate) async fn connect(plan: &Plan, environment: &Environment) -> Result<Self, Failure> {
        let simulated = plan.simulate.then(|| simulate(plan, environment)).transpose()?;
        let base = match (&simulated, &plan.base_url) {
            (Some(sim), _) => {
                let (host, port) = (sim.addr.ip().to_string(), sim.addr.port());
                BaseUrl::from_host_port(&host, port).or_code(Code::Bug)?
            }
            (None, Some(base)) => base.clone(),
            (None, None) => return Err(Failure::usage("no server: give --base-url or --simulate")),
        };
        let Reached { target, connect, control } = Reached::new(base, plan, environment).await?;
        let mut others = Vec::new();
        for base in &plan.further_base_urls {
            others.push(Reached::new(base.clone(), plan, environment).await?);
        }
        let mut workers = Vec::new();
        for worker in plan.profile.iter().flat_map(|profile| &profile.workers) {
            let reached = Reached::new(worker.url.clone(), plan, environment).await;
            workers.push(reached.map(|worker| worker.control));
        }
        Ok(Self { target, connect, control, others, workers, _simulated: simulated })
    }

    /// Waits until the server answers, as long as the plan says.
    pub(crate) async fn wait_ready(&self, plan: &Plan, io: &Io) -> Result<(), Failure> {
        let Some(limit) = plan.ready_timeout else { return Ok(()) };
        for control in self.controls() {
            if !plan.simulate {
                let url = control.url("");
                io.say(format_args!(
                    "waiting up to {}s for {url} to become ready",
                    limit.as_secs()
                ));
            }
            control.wait_ready(limit).await.map_err(|error| {
                Failure::new(Code::Server, error).hint(
                    "check --base-url (or --host and --port) and, if the server asks for a key, \
                     OPENAI_API_KEY; --ready-check-timeout-sec changes the wait, 0 skips it",
                )
            })?;
        }
        Ok(())
    }

    /// The control calls of every server.
    pub(crate) fn controls(&self) -> impl Iterator<Item = &Control<TcpConnect>> {
        std::iter::once(&self.control).chain(self.others.iter().map(|other| &other.control))
    }

    /// The ways to every server, for requests.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (&Target, &TcpConnect)> {
        let others = self.others.iter().map(|other| (&other.target, &other.connect));
        std::iter::once((&self.target, &self.connect)).chain(others)
    }

    /// Where receive times come from: those of the reads as soon as one server has no others.
    pub(crate) fn stamps(&self) -> Stamps {
        let all = self.ways().all(|(_, connect)| connect.stamps() == Stamps::Kernel);
        if all { Stamps::Kernel } else { Stamps::User }
    }

    /// The servers' addresses, for messages.
    pub(crate) fn names(&self) -> String {
        let names: Vec<String> = self.ways().map(|(target, _)| target.base().to_string()).collect();
        names.join(", ")
    }
}

fn family(backend: BackendKind) -> Family {
    match backend {
        BackendKind::Vllm | BackendKind::VllmChat | BackendKind::VllmEmbedding => Family::Vllm,
        backend if backend.info().is_sglang => Family::Sglang,
        _ => Family::Other,
    }
}

/// The built-in server: an engine model, under the key that the client would send.
fn simulate(plan: &Plan, environment: &Environment) -> Result<SimHandle, Failure> {
    let model = plan.served_model_name.as_ref().or(plan.model.as_ref());
    let config = SimConfig {
        model: model.cloned().unwrap_or_else(|| "sim".into()),
        timing: Timing::Engine(CostModel::default()),
        cache_report: plan.report.cache_report,
        api_key: environment.get("OPENAI_API_KEY").map(str::to_owned),
        ..SimConfig::default()
    };
    Sim::new(config).spawn_in_thread().or_code(Code::Server)
}
