//! How a stream of a batch is cut changes nothing of what is noted of it.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_backends::fuzzing::batch_frames(data));
