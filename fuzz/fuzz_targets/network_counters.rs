//! Any bytes are read as the kernel's TCP counters or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_cli::fuzzing::network_counters(data));
