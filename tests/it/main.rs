//! Tests of bench-serving from outside: cases, command line, simulated runs, README.

mod browser;
mod calibration;
mod cases;
mod command_line;
mod documents;
mod flags;
mod guides;
mod options;
mod parity;
mod prose;
mod simulated;
mod stack;
mod support;
mod sweep;
mod targets;
mod verdict;
mod vllm;
mod vllm_backends;
mod vllm_datasets;
mod vllm_scripts;
