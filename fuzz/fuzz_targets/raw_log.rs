//! Any frames are read as records, which written anew are the same ones, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    servebench_journal::fuzzing::records(data);
    servebench_journal::fuzzing::record_frames(data);
});
