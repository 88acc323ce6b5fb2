//! The built-in server as a process of its own, for calibration.
//!
//! The program starts itself again with a first word that nobody types. The child reads its
//! configuration, a line of JSON, from standard input, answers with the address at which it serves,
//! and ends with its standard input: whatever happens to the parent, no child outlives it.

use crate::environment::SECRET_VARIABLES;
use crate::exit::OrCode;
use crate::{Code, Failure, Io};
use anyhow::Context;
use servebench_http::{BaseUrl, Caller, Method, Target, TcpConnect, TlsOptions};
use servebench_sim::{Sim, SimConfig, TruthRecord};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The first word of a child's command line.
pub(crate) const WORD: &str = "__serve-for-calibration";

/// How long the truth may take to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the child does: serves until `input` ends.
pub(crate) fn serve(input: &mut dyn BufRead, io: &Io) -> Result<Code, Failure> {
    let mut line = String::new();
    input.read_line(&mut line).or_code(Code::Data)?;
    let config: SimConfig = serde_json::from_str(&line).or_code(Code::Data)?;
    // Too few descriptors show as connections that are not accepted; what can be had is taken.
    drop(rlimit::increase_nofile_limit(u64::MAX));
    let server = Sim::new(config).spawn_in_thread().or_code(Code::Server)?;
    io.print(server.addr).or_code(Code::Output)?;
    input.read_to_end(&mut Vec::new()).or_code(Code::Data)?;
    Ok(Code::Done)
}

/// A child that serves. Dropping it ends the child.
pub(crate) struct Replica {
    pub(crate) target: Target,
    pub(crate) connect: TcpConnect,
    _process: Process,
}

impl Replica {
    /// Starts `program`, which must be this one.
    pub(crate) fn start(
        program: &Path,
        config: &SimConfig,
        runtime: &Runtime,
    ) -> Result<Self, anyhow::Error> {
        let child = command(program)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut process = Process(child);
        let base: BaseUrl = format!("http://{}", process.greet(config)?.trim()).parse()?;
        let connect = runtime.block_on(TcpConnect::resolve(&base, &TlsOptions::default()))?;
        Ok(Self { target: Target::new(base), connect, _process: process })
    }

    /// What it really did. Nobody may be talking to it any more.
    pub(crate) fn truth(&self, runtime: &Runtime) -> Result<Vec<TruthRecord>, anyhow::Error> {
        let caller = Caller::new(self.connect.clone(), self.target.clone());
        let answer = caller.call(Method::GET, "/sim/truth", None, PATIENCE);
        Ok(serde_json::from_slice(&runtime.block_on(answer)?.body)?)
    }
}

/// The child's command. It asks nobody for anything, so that it needs no keys: those of the environment
/// stay here, and what it is told comes by standard input, where nobody else sees it.
fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(WORD).stdin(Stdio::piped()).stdout(Stdio::piped());
    for variable in SECRET_VARIABLES {
        command.env_remove(variable).env_remove(variable.to_ascii_lowercase());
    }
    command
}

struct Process(Child);

impl Process {
    /// Sends the configuration and gives the answer.
    fn greet(&mut self, config: &SimConfig) -> Result<String, anyhow::Error> {
        let mut config = serde_json::to_vec(config)?;
        config.push(b'\n');
        let input = self.0.stdin.as_mut().context("the built-in server has no input")?;
        input.write_all(&config).context("the built-in server takes no configuration")?;
        let output = self.0.stdout.take().context("the built-in server has no output")?;
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address)?;
        anyhow::ensure!(!address.is_empty(), "the built-in server did not start");
        Ok(address)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It would end with its input, but whatever keeps it must not keep this process. What fails
        // here fails since it is gone.
        drop(self.0.stdin.take());
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn a_child_is_given_no_keys() {
        let command = command(Path::new("program"));
        assert_eq!(command.get_args().collect::<Vec<_>>(), [WORD]);
        let taken: Vec<&OsStr> =
            command.get_envs().filter(|(_, value)| value.is_none()).map(|(name, _)| name).collect();
        for name in ["OPENAI_API_KEY", "API_KEY", "HF_TOKEN", "HTTPS_PROXY", "https_proxy"] {
            assert!(taken.contains(&OsStr::new(name)), "{name}");
        }
        assert!(command.get_envs().all(|(_, value)| value.is_none()), "nothing is added");
    }
}
