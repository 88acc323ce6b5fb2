//! How a response of typed events is cut changes stamps only.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_backends::fuzzing::responses_frames(data));
