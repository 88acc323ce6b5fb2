//! Benchmark datasets: files and generators to prompts, with the draws of the Python tools.
//!
//! [`load`] turns [`DatasetOptions`] into [`Sample`](servebench_core::Sample)s. For `random`,
//! `random-ids`, `sharegpt` and `custom` it makes the very draws that the Python tool makes, in its
//! order, from a pair of generators that is handed on afterwards: the same seed gives the same
//! prompts, the same lengths, and the same arrival gaps later.
//!
//! `generated-shared-prefix`, `mooncake`, `openai` and `agentic-trace` make its rows as well; those
//! may have more than a prompt: a routing key, a time, fields of the body, several turns.
//!
//! `longbench_v2` and `speed-bench` are read as a [`table`]: from Parquet (feature `parquet`) or JSON,
//! from a file, a folder or the hub.
//!
//! `image` and `mmmu` (feature `images`) have pictures, whose tokens are counted as the model's processor
//! counts them where its rule is known.
//!
//! Invariants: a wrong path is an error and never a silent download; a row that cannot be used is
//! skipped and counted, and what is said about it is in [`Loaded::warnings`]; no file makes it panic.
//!
//! # Example
//!
//! ```
//! use servebench_core::random::Draws;
//! use servebench_datasets::{DatasetName, DatasetOptions, load};
//! use servebench_tokens::{Hub, HubConfig, Tokenizer};
//!
//! let options = DatasetOptions {
//!     name: DatasetName::RandomIds,
//!     num_prompts: 2,
//!     random_input_len: 8,
//!     ..DatasetOptions::default()
//! };
//! let hub = Hub::new(HubConfig { offline: true, ..HubConfig::new("cache") });
//! let loaded = load(&options, &Tokenizer::byte_level(), &hub, &mut Draws::new(42))?;
//! assert_eq!(loaded.samples.iter().map(|s| s.prompt_len).collect::<Vec<_>>(), [7, 4]);
//! # Ok::<(), servebench_datasets::DatasetError>(())
//! ```

mod agentic;
mod chat;
mod conversations;
mod corpus;
mod error;
mod exact;
#[doc(hidden)]
pub mod fuzzing;
mod image;
mod lengths;
mod lines;
mod load;
mod longbench;
#[cfg(feature = "images")]
mod mmmu;
mod mooncake;
mod openai;
mod options;
mod python_json;
mod random;
mod shared_prefix;
mod skips;
mod speed_bench;
pub mod table;
pub mod vllm;
mod words;

pub use agentic::AgenticOptions;
pub use chat::count_messages;
pub use error::DatasetError;
#[cfg(feature = "images")]
pub use image::noise_like;
pub use image::{ImageContent, ImageFormat, ImageOptions, Resolution, ResolutionError, Size};
pub use lengths::{Drift, count_true_lengths, measure_drift};
pub use load::{Loaded, load};
pub use mooncake::{MooncakeOptions, Workload};
pub use options::{DatasetName, DatasetOptions};
pub use shared_prefix::SharedPrefixOptions;
pub use speed_bench::{SpeedBenchCategory, SpeedBenchOptions};
