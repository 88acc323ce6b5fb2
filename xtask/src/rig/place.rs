//! Where a process runs and how much the scheduler favours it.

use crate::shell;
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// One core, and a priority on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) core: u32,
    /// As `nice` has it: below 0 is favoured, and is refused to most users.
    pub(crate) nice: i32,
}

/// The priority is set for the session too, since Linux shares the processor among sessions first.
const SCRIPT: &str = r#"nice=$1 core=$2; shift 2
[ "$nice" = 0 ] || echo "$nice" 2>/dev/null >/proc/self/autogroup || true
exec nice -n "$nice" taskset -c "$core" "$@""#;

impl Place {
    /// A command that runs `program` here, in a session of its own, with the process id that the
    /// command is started with; it ends with this process.
    pub(crate) fn command(self, program: &Path) -> Command {
        let mut command = shell::command("setsid");
        command
            .args(["setpriv", "--pdeathsig", "KILL", "sh", "-c", SCRIPT, "sh"])
            .args([self.nice.to_string(), self.core.to_string()])
            .arg(program);
        command
    }
}

/// The first of the programs that a place needs and that is not there.
pub(crate) fn missing() -> Option<&'static str> {
    ["setsid", "setpriv", "nice", "taskset"]
        .into_iter()
        .find(|program| !shell::has(program, "--version"))
}

/// True when this process may raise priorities.
pub(super) fn is_root() -> Result<bool> {
    Ok(shell::read(shell::command("id").arg("-u"))?.trim() == "0")
}
