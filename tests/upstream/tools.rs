//! The Python tools, their recorded parsers and our commands.

use clap::{Command, CommandFactory};
use serde_json::Value;
use servebench_cli::vllm::args::VLLM_FLAGS;
use servebench_cli::vllm::sweep::{
    PlotCommand, PlotParetoCommand, SWEEP_PLOT_FLAGS, SWEEP_PLOT_PARETO_FLAGS, SWEEP_SERVE_FLAGS,
    SWEEP_SERVE_WORKLOAD_FLAGS, ServeSweepCommand, ServeWorkloadCommand,
};
use servebench_cli::vllm::{LATENCY_FLAGS, STARTUP_FLAGS, THROUGHPUT_FLAGS};

/// A Python tool and what takes its place.
#[derive(Clone, Copy, Debug)]
pub struct Tool {
    /// Its name in the recording.
    pub name: &'static str,
    /// The recording.
    recording: &'static str,
    /// What users start.
    pub started_as: &'static str,
    /// The name under which our program knows it.
    pub known_as: &'static str,
    /// Our program, with its subcommand.
    pub program: &'static str,
    /// Our program's command line.
    command: fn() -> Command,
    /// The flags of which our program understands unique prefixes.
    pub abbreviable: &'static [&'static str],
}

const SGLANG_RECORDING: &str = include_str!("../fixtures/upstream/sglang-0.5.23.json");

const VLLM_RECORDING: &str = include_str!("../fixtures/upstream/vllm-0.32.0.json");

/// The tools of SGLang 0.5.23.
pub const SGLANG: [Tool; 5] = [
    Tool {
        name: "bench_serving",
        recording: SGLANG_RECORDING,
        started_as: "python -m sglang.bench_serving",
        known_as: "sglang.bench_serving",
        program: "bench-serving",
        command: bench_serving::Args::command,
        abbreviable: servebench_cli::args::SGLANG_FLAGS,
    },
    Tool {
        name: "steady_state_serving",
        recording: SGLANG_RECORDING,
        started_as: "python -m sglang.benchmark.steady_state_serving",
        known_as: "sglang.bench_serving",
        program: "bench-serving",
        command: bench_serving::Args::command,
        abbreviable: &[],
    },
    Tool {
        name: "bench_one_batch_server",
        recording: SGLANG_RECORDING,
        started_as: "python -m sglang.bench_one_batch_server",
        known_as: "sglang.bench_one_batch_server",
        program: "bench-one-batch-server",
        command: bench_one_batch_server::Args::command,
        abbreviable: servebench_cli::one_batch::ONE_BATCH_FLAGS,
    },
    Tool {
        name: "profiler",
        recording: SGLANG_RECORDING,
        started_as: "python -m sglang.profiler",
        known_as: "sglang.profiler",
        program: "profiler",
        command: profiler::Profile::command,
        abbreviable: servebench_cli::profiler::PROFILER_FLAGS,
    },
    Tool {
        name: "send_one",
        recording: SGLANG_RECORDING,
        started_as: "python -m sglang.test.send_one",
        known_as: "sglang.test.send_one",
        program: "send-one",
        command: send_one::Args::command,
        abbreviable: servebench_cli::send_one::SEND_ONE_FLAGS,
    },
];

/// The commands of vLLM 0.32.0's `vllm bench` that have one here.
pub const VLLM: [Tool; 8] = [
    vllm("vllm bench serve", "bench-vllm serve", bench_vllm::ServeArgs::command, VLLM_FLAGS),
    vllm(
        "vllm bench throughput",
        "bench-vllm throughput",
        bench_vllm::ThroughputCommand::command,
        THROUGHPUT_FLAGS,
    ),
    vllm(
        "vllm bench latency",
        "bench-vllm latency",
        bench_vllm::LatencyCommand::command,
        LATENCY_FLAGS,
    ),
    vllm(
        "vllm bench startup",
        "bench-vllm startup",
        bench_vllm::StartupCommand::command,
        STARTUP_FLAGS,
    ),
    vllm(
        "vllm bench sweep serve",
        "bench-vllm sweep serve",
        ServeSweepCommand::command,
        SWEEP_SERVE_FLAGS,
    ),
    vllm(
        "vllm bench sweep serve_workload",
        "bench-vllm sweep serve_workload",
        ServeWorkloadCommand::command,
        SWEEP_SERVE_WORKLOAD_FLAGS,
    ),
    vllm("vllm bench sweep plot", "bench-vllm sweep plot", PlotCommand::command, SWEEP_PLOT_FLAGS),
    vllm(
        "vllm bench sweep plot_pareto",
        "bench-vllm sweep plot_pareto",
        PlotParetoCommand::command,
        SWEEP_PLOT_PARETO_FLAGS,
    ),
];

const fn vllm(
    name: &'static str,
    program: &'static str,
    command: fn() -> Command,
    abbreviable: &'static [&'static str],
) -> Tool {
    let recording = VLLM_RECORDING;
    Tool { name, recording, started_as: name, known_as: name, program, command, abbreviable }
}

/// A flag as a Python parser has it.
#[derive(Clone, Debug)]
pub struct Flag {
    /// Its long name.
    pub name: String,
    /// Its other names.
    pub aliases: Vec<String>,
    /// What its value is; `switch` and `pair` have none.
    pub kind: String,
    /// How many values it takes: `None` is one.
    pub nargs: Option<String>,
    /// What is taken when it is left out.
    pub default: Value,
    /// The values that are let in; empty when all are.
    pub choices: Vec<String>,
}

impl Tool {
    /// Our command, complete.
    pub fn command(&self) -> Command {
        let mut command = (self.command)();
        command.build();
        command
    }

    /// The flags of the tool's own.
    pub fn flags(&self) -> Vec<Flag> {
        self.recorded("flags")
    }

    /// The flags that it hands on to the server it starts.
    pub fn flags_of_its_server(&self) -> Vec<Flag> {
        self.recorded("server_flags")
    }

    fn recorded(&self, key: &str) -> Vec<Flag> {
        let recording: Value = serde_json::from_str(self.recording).unwrap_or_default();
        let listed = recording["tools"][self.name][key].as_array();
        listed.into_iter().flatten().map(Flag::read).collect()
    }
}

impl Flag {
    fn read(recorded: &Value) -> Self {
        let words = |key: &str| {
            recorded[key].as_array().into_iter().flatten().filter_map(text).collect::<Vec<_>>()
        };
        Self {
            name: text(&recorded["flag"]).unwrap_or_default(),
            aliases: words("aliases"),
            kind: text(&recorded["type"]).unwrap_or_default(),
            nargs: text(&recorded["nargs"]),
            default: recorded["default"].clone(),
            choices: words("choices"),
        }
    }

    /// Whether it takes no value.
    pub fn is_switch(&self) -> bool {
        matches!(self.kind.as_str(), "switch" | "pair")
    }

    /// Its default in words; `None` when there is none, or it is worked out later.
    pub fn default_text(&self) -> Option<String> {
        match &self.default {
            Value::Array(items) => {
                Some(items.iter().filter_map(text).collect::<Vec<_>>().join(" "))
            }
            other => text(other),
        }
        .filter(|text| !text.is_empty())
    }
}

/// A scalar in words.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}
