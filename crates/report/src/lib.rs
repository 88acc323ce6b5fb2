//! Benchmark reports: result schema, console table and JSONL.
