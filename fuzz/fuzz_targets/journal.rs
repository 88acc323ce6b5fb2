//! Any bytes are read as a log, whose frames written anew are the same bytes, or refused.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| servebench_journal::fuzzing::journal(data));
