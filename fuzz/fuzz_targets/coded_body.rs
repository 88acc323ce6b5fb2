//! A compressed body is the same however it is cut, or damaged.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_http::fuzzing::coded_body(data));
