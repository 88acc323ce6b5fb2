//! CPU time and memory of a process and its children, read from `/proc`.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, ExitStatus};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a finished client cost.
#[derive(Debug)]
pub(crate) struct Usage {
    /// How it ended.
    pub(crate) status: ExitStatus,
    /// When it was started, in seconds since the epoch.
    pub(crate) launched: f64,
    /// When it had ended, to 25 ms, in seconds since the epoch.
    pub(crate) ended: f64,
    /// Largest resident memory of the process tree, in bytes.
    pub(crate) peak_memory: u64,
    /// (seconds since the epoch, CPU seconds so far), in order of time.
    samples: Vec<(f64, f64)>,
}

/// Called 40 times a second while a client runs, with its process id and the seconds since its
/// launch.
pub(crate) type Watch<'a> = dyn FnMut(u32, f64) -> Result<()> + 'a;

impl Usage {
    /// CPU seconds spent between two moments, in seconds since the epoch.
    pub(crate) fn cpu_between(&self, begin: f64, end: f64) -> f64 {
        self.cpu_at(end) - self.cpu_at(begin)
    }

    /// Linear between the samples around `moment`.
    fn cpu_at(&self, moment: f64) -> f64 {
        let after = self.samples.partition_point(|&(at, _)| at < moment);
        let last = self.samples.len().saturating_sub(1);
        let Some(&(end, high)) = self.samples.get(after.min(last)) else { return 0.0 };
        let Some(&(begin, low)) = self.samples.get(after.min(last).saturating_sub(1)) else {
            return high;
        };
        if end <= begin || moment >= end {
            return high;
        }
        low + (high - low) * ((moment - begin) / (end - begin)).clamp(0.0, 1.0)
    }
}

/// Runs `command` to its end, sampling its process tree 40 times a second.
pub(crate) fn watch(
    command: &mut Command,
    limit: Duration,
    during: &mut Watch<'_>,
) -> Result<Usage> {
    let ticks = ticks_per_second()?;
    let launched = now();
    let mut child = command.spawn().context("cannot start the client")?;
    let mut samples = vec![(launched, 0.0)];
    // By process: CPU seconds so far, and the most memory that it ever had.
    let mut seen: BTreeMap<u32, (f64, u64)> = BTreeMap::new();
    let mut peak_memory = 0;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        let mut memory = 0;
        for pid in tree(child.id()) {
            if let Some((used, peak)) = stat(pid) {
                seen.insert(pid, (used as f64 / ticks, peak));
                memory += peak;
            }
        }
        peak_memory = peak_memory.max(memory);
        samples.push((now(), seen.values().map(|&(used, _)| used).sum()));
        if now() - launched > limit.as_secs_f64() {
            child.kill()?;
        }
        during(child.id(), now() - launched)?;
        std::thread::sleep(Duration::from_millis(25));
    };
    Ok(Usage { status, launched, ended: now(), peak_memory, samples })
}

/// Clock ticks in a second, as `/proc` counts CPU time.
fn ticks_per_second() -> Result<f64> {
    let text = crate::shell::read(crate::shell::command("getconf").arg("CLK_TCK"))?;
    text.trim().parse().context("getconf CLK_TCK")
}

/// Seconds since the epoch.
pub(super) fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// A process and all that descend from it.
fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&pid) = found.get(next) {
        // Each thread has children of its own.
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        next += 1;
    }
    found
}

/// (user + system CPU in ticks, most resident memory so far in bytes) of one process.
fn stat(pid: u32) -> Option<(u64, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(") ")?;
    let field = |at: usize| after_name.split(' ').nth(at)?.parse::<u64>().ok();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.split_whitespace().next()?.parse().ok()?;
    Some((field(11)? + field(12)?, kilobytes * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_is_linear_between_samples() {
        let usage = Usage {
            status: ExitStatus::default(),
            launched: 10.0,
            ended: 13.0,
            peak_memory: 0,
            samples: vec![(10.0, 0.0), (11.0, 0.5), (13.0, 1.5)],
        };
        assert!((usage.cpu_between(10.5, 12.0) - 0.75).abs() < 1e-12);
        assert!((usage.cpu_between(0.0, 99.0) - 1.5).abs() < 1e-12);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_memory() {
        assert!(stat(std::process::id()).is_some_and(|(_, resident)| resident > 100_000));
    }
}
