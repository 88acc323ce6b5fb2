//! Any text is read as a fault script or configuration, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_sim::fuzzing::settings(data));
