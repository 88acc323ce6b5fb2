//! The same command line, the same server: what `bench-serving` sends and reports beside what the Python tool
//! sent and reported, from `tests/golden/` (whose `PROVENANCE.md` tells how it was recorded).
//!
//! A recorded run is repeated in process against a loopback server that keeps every call. All differences that
//! are meant stand in [`differences::DIFFERENCES`], each with its reason; anything else fails.

mod arrivals;
pub(crate) mod capture;
mod datasets;
mod differences;
mod golden;
mod matrix;
mod payloads;
mod pictures;
mod results;
mod rewrites;
mod structured;
