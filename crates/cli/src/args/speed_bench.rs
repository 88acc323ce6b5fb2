//! SPEED-Bench.

use clap::{Args, ValueEnum};
use servebench_datasets::SpeedBenchCategory;

/// The rows of `speed-bench` that are taken.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset speed-bench")]
pub struct SpeedBenchArgs {
    /// Take the rows of this category only [default: all]
    #[arg(long, value_name = "NAME")]
    pub speed_bench_category: Option<SpeedBenchCategoryName>,

    /// Output tokens of every request [default: 512]
    #[arg(long, value_name = "TOKENS")]
    pub speed_bench_output_len: Option<u32>,
}

/// How predictable the text of a prompt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum SpeedBenchCategoryName {
    /// Predictable, as code and tables.
    LowEntropy,
    /// Of both kinds.
    Mixed,
    /// Hard to predict, as stories and role play.
    HighEntropy,
}

impl From<SpeedBenchCategoryName> for SpeedBenchCategory {
    fn from(name: SpeedBenchCategoryName) -> Self {
        match name {
            SpeedBenchCategoryName::LowEntropy => Self::LowEntropy,
            SpeedBenchCategoryName::Mixed => Self::Mixed,
            SpeedBenchCategoryName::HighEntropy => Self::HighEntropy,
        }
    }
}
