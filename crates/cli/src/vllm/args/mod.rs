//! What a user of `vllm bench serve` can say.
//!
//! As in [`crate::args`], a group only takes down what was typed.

mod content;
mod dataset;
mod datasets_more;
mod flags;
mod load;
mod log;
mod own;
mod report;
mod target;

pub use content::ContentArgs;
pub use dataset::{DatasetName, VllmDatasetArgs};
pub use datasets_more::{GeneratedArgs, HfArgs, MediaArgs, QuestionArgs, TraceArgs};
pub use flags::VLLM_FLAGS;
pub use load::{RampStrategy, VllmLoadArgs};
pub use log::{VllmAnalyzeArgs, VllmLogArgs, VllmReplayArgs};
pub use own::TransportArgs;
pub use report::VllmReportArgs;
pub use target::{LoraAssignment, VllmTargetArgs};
