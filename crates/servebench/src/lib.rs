//! LLM serving benchmarks as a library: one dependency, features pick the parts.
//!
//! Each part is a crate of its own, re-exported under a short name; see their pages for what they
//! do alone. Together they are a whole benchmark.
//!
//! # Features
//!
//! `metrics`, `arrival`, `backends`, `run`, `http`, `control` and `report` are on by default;
//! `tokens`, `datasets`, `journal`, `recording` and `sim` are not.
//!
//! # Example
//!
//! A whole run: eight requests against a (simulated) server, two at a time, and its table.
//!
//! ```
//! use servebench::backends::{BackendKind, GenerateOptions};
//! use servebench::core::{Request, Sample};
//! use servebench::http::{BaseUrl, HttpBackend, Limits, Target, TcpConnect, TlsOptions};
//! use servebench::metrics::{Measured, Options, aggregate};
//! use servebench::report::{Report, RunInfo, table};
//! use servebench::run::{Job, Progress, Stop, run_on_threads};
//! # use servebench_sim::{Sim, SimConfig};
//! # let server = Sim::new(SimConfig::default()).spawn_in_thread()?;
//! # let address = format!("http://{}", server.addr);
//!
//! // What to send, and to whom.
//! let options = GenerateOptions { model: "sim".into(), ..GenerateOptions::default() };
//! let protocol = BackendKind::SglangOaiChat.protocol(options);
//! let sample = Sample { prompt: "Tell me.".into(), output_len: 16, ..Sample::default() };
//! let request = |id| Request { id, body: protocol.encode(&sample, None), output_len: 16, ..Request::default() };
//! let job = Job { max_concurrency: Some(2), ..Job::burst((0..8).map(request).collect()) };
//!
//! let base: BaseUrl = address.parse()?;
//! let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! let connect = runtime.block_on(TcpConnect::resolve(&base, &TlsOptions::default()))?;
//! let target = Target::new(base);
//!
//! // Send it on one thread.
//! let backend =
//!     |clock| HttpBackend::new(clock, connect.clone(), &target, protocol.clone(), Limits::default());
//! let run = run_on_threads(&job, 1, backend, &Default::default(), &Stop::default())?;
//!
//! // Numbers, and a table.
//! let aggregates = aggregate(run.records.iter().map(Measured::from), &Options::default());
//! assert_eq!(aggregates.completed, 8);
//! assert_eq!(aggregates.own.total_output_tokens, 8 * 16);
//! let info = RunInfo { backend: "sglang-oai-chat".into(), ..RunInfo::default() };
//! let report = Report { info, aggregates, itl_rule: Default::default(), details: None };
//! assert!(table(&report).contains("Successful requests:                     8"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[cfg(feature = "arrival")]
pub use servebench_arrival as arrival;
#[cfg(feature = "backends")]
pub use servebench_backends as backends;
#[cfg(feature = "control")]
pub use servebench_control as control;
pub use servebench_core as core;
#[cfg(feature = "datasets")]
pub use servebench_datasets as datasets;
#[cfg(feature = "http")]
pub use servebench_http as http;
#[cfg(feature = "journal")]
pub use servebench_journal as journal;
#[cfg(feature = "metrics")]
pub use servebench_metrics as metrics;
#[cfg(feature = "recording")]
pub use servebench_recording as recording;
#[cfg(feature = "report")]
pub use servebench_report as report;
#[cfg(feature = "run")]
pub use servebench_run as run;
#[cfg(feature = "sim")]
pub use servebench_sim as sim;
#[cfg(feature = "tokens")]
pub use servebench_tokens as tokens;
