//! Any bytes are read as a Parquet file or refused.

#![no_main]

use std::sync::Once;

static QUIET: Once = Once::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    // The reader's own panics are caught and become errors. The fuzzer's hook would end the process
    // before that; what is not caught still does.
    QUIET.call_once(|| std::panic::set_hook(Box::new(|_| {})));
    servebench_datasets::table::fuzzing::table_parquet(data);
});
