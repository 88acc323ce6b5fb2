//! Benches of the hot paths, one file for each.
//!
//! Run them with `cargo bench -p servebench-benches`. They share the allocator of the binaries.

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
