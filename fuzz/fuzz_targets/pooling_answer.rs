//! How an answer with pooled data, scores or bytes is cut changes stamps only.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_backends::fuzzing::pooling_answer(data));
