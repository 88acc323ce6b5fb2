//! Benchmark reports: result schema, console table and JSONL.
//!
//! A [`Report`] joins what was run ([`RunInfo`]) with what was measured
//! ([`Aggregates`](servebench_metrics::Aggregates)). It is shown as the [`table`] of the Python
//! tool it replaces, and kept as one [`json_line`] with every key of that tool and more.
//!
//! Invariant: table and line show the same numbers, and the line is strict JSON whatever happened.
//! Each key is in one table in this crate, which writes the line, its [`schema`] and its [`keys`]'
//! documentation.
//!
//! # Example
//!
//! ```
//! use servebench_core::{Record, Stamp};
//! use servebench_metrics::{ItlRule, Measured, Options, aggregate};
//! use servebench_report::{Report, RunInfo, json_line, table};
//!
//! let mut record = Record { prompt_len: 8, output_len: 2, ..Record::default() };
//! record.reply.push_chunk(Stamp::from_millis(100), Some(1), 0, "Hel");
//! record.reply.push_chunk(Stamp::from_millis(150), Some(1), 0, "lo");
//! record.reply.completion_tokens = Some(2);
//!
//! let info = RunInfo { backend: "sglang".into(), ..RunInfo::default() };
//! let requests = [Measured::from(&record)];
//! let aggregates = aggregate(requests, &Options::default());
//! let report =
//!     Report { info, aggregates, itl_rule: ItlRule::default(), details: Some(&requests) };
//! assert!(table(&report).contains("Mean TTFT (ms):                          100.00    \n"));
//! assert!(json_line(&report).contains(r#""ttfts":[0.1],"itls":[[0.05]]"#));
//! ```

mod columns;
mod file;
mod health;
mod info;
mod json;
mod number;
mod plot;
mod schema;
mod steady;
mod table;
pub mod vllm;

pub use columns::{KeyDoc, Presence, SCHEMA_VERSION};
pub use file::{ReportError, append_line, auto_file_name, check_writable};
pub use health::{Calibration, ClientHealth, TcpCounts};
pub use info::{Report, RequestRate, RunInfo};
pub use json::json_line;
pub use number::{percent_g, python_float};
pub use plot::{plot, plot_steps};
pub use schema::{keys, schema};
pub use steady::steady_table;
pub use table::table;
