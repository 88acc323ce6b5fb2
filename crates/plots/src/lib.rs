//! Pictures of a run: request timeline, length statistics, sweep curves, Pareto frontier; as HTML and SVG.
//!
//! Plain data in, text out: nothing is read or written here. Pages are single files that load nothing, and
//! run their own script only; text from outside is text in them. Pictures are SVG, which a browser shows
//! at any size, in light and dark, with the numbers as text that can be searched and read aloud. There is no
//! PNG: it would take a rasterizer, a text shaper and an embedded font, for less.
//!
//! Invariant: any input gives well-formed output, in which every place is a number.
//!
//! # Example
//!
//! ```
//! use servebench_plots::{Timeline, TimelineOptions, TimelineRequest};
//!
//! let mut timeline = Timeline::new(TimelineOptions::default());
//! timeline.push(&TimelineRequest {
//!     start_s: 0.5,
//!     ttft_s: Some(0.120),
//!     itls_s: (&[0.010, 0.011, 0.060][..]).into(),
//!     prompt_tokens: 128,
//!     output_tokens: 4,
//!     ..TimelineRequest::default()
//! });
//! let html = timeline.into_html();
//! assert!(html.starts_with("<!DOCTYPE html>"));
//! assert!(!html.contains("https://"));
//! ```

mod chart;
mod error;
mod escape;
#[doc(hidden)]
pub mod fuzzing;
mod lengths;
mod page;
mod pareto;
mod rows;
mod scale;
mod svg;
mod sweep;
mod timeline;

pub use error::PlotError;
pub use lengths::LengthStatistics;
pub use page::page;
pub use pareto::{Pareto, ParetoPlot, frontier};
pub use rows::Row;
pub use scale::ScaleKind;
pub use svg::Picture;
pub use sweep::{Bin, Comparison, Figure, Filter, SweepPlot};
pub use timeline::{Timeline, TimelineOptions, TimelineRequest};
