//! How a response is cut changes nothing.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_http::fuzzing::response(data));
