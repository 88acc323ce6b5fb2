//! Any bytes are read as a summary of a sweep and drawn, every mark at a place, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_plots::fuzzing::sweep_summary(data));
