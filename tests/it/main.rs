//! Tests of bench-serving from outside: cases, command line, simulated runs, README.

mod calibration;
mod cases;
mod command_line;
mod documents;
mod parity;
mod prose;
mod simulated;
mod stack;
mod support;
mod targets;
mod verdict;
