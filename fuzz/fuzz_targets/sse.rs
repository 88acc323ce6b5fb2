//! How a body is cut changes no event.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_backends::fuzzing::sse(data));
