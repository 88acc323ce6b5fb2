//! What is said about flags that are not the same here as upstream.

mod sglang;
mod vllm;

use crate::Difference;

/// What is said about one flag.
#[derive(Clone, Copy, Debug)]
pub struct Verdict {
    /// The tool's name in the recording.
    pub tool: &'static str,
    /// The flag.
    pub flag: &'static str,
    /// In what the two command lines differ: exactly this, or the tests fail.
    pub differs: &'static [Difference],
    /// What is better, or other, and why.
    pub how: &'static str,
}

/// The verdicts on the flags of one tool: flag, differences, words.
type Table = &'static [(&'static str, &'static [Difference], &'static str)];

/// Every verdict on a flag of this tool.
pub fn of(tool: &str) -> impl Iterator<Item = Verdict> + use<> {
    let tables = TABLES.iter().filter(|(name, _)| *name == tool).copied().collect::<Vec<_>>();
    tables.into_iter().flat_map(|(tool, table)| {
        table.iter().map(move |&(flag, differs, how)| Verdict { tool, flag, differs, how })
    })
}

/// Every tool that something is said about.
pub const TABLES: &[(&str, Table)] = &[
    ("bench_serving", sglang::BENCH_SERVING),
    ("steady_state_serving", sglang::STEADY_STATE_SERVING),
    ("bench_one_batch_server", sglang::BENCH_ONE_BATCH_SERVER),
    ("profiler", sglang::PROFILER),
    ("send_one", sglang::SEND_ONE),
    ("vllm bench serve", vllm::SERVE),
    ("vllm bench serve", vllm::DATA),
    ("vllm bench throughput", vllm::THROUGHPUT),
    ("vllm bench throughput", vllm::DATA),
    ("vllm bench latency", vllm::LATENCY),
    ("vllm bench sweep serve", vllm::SWEEP),
    ("vllm bench sweep serve_workload", vllm::SWEEP),
    ("vllm bench sweep plot", vllm::PLOT),
    ("vllm bench sweep plot_pareto", vllm::PLOT_PARETO),
];
