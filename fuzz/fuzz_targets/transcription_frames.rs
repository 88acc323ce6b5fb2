//! How a transcription is cut changes stamps only.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_backends::fuzzing::transcription_frames(data));
