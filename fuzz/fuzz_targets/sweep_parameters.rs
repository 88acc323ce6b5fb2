//! Any bytes are read as parameters of a sweep, and applied to a command, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_cli::fuzzing::sweep_parameters(data));
