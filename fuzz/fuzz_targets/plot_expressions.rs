//! Any text is read as filters and bins, which add no run, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_plots::fuzzing::plot_expressions(data));
