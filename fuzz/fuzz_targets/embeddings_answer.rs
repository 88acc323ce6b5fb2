//! How an answer with embeddings is cut changes stamps only.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_backends::fuzzing::embeddings_answer(data));
