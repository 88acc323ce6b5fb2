//! Tests of bench-serving from outside: cases, command line, simulated runs, README.

mod browser;
mod calibration;
mod cases;
mod command_line;
mod documents;
mod fault_matrix;
mod flags;
mod guides;
mod options;
mod parity;
mod prose;
mod raw_log;
mod recording;
mod simulated;
mod stack;
mod support;
mod sweep;
mod sweep_golden;
mod targets;
mod verdict;
mod vllm;
mod vllm_backends;
mod vllm_datasets;
mod vllm_offline;
mod vllm_scripts;
mod vllm_structured;
