//! When requests are sent.

use clap::{Args, ValueEnum};
use serde::Serialize;
use servebench_arrival::RampShape;

/// When requests are sent, and what goes before and beside.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Load")]
pub struct VllmLoadArgs {
    /// Requests to sample [default: 1000]; 0 or less: all rows of a file
    #[arg(long, value_name = "N")]
    pub num_prompts: Option<i64>,

    /// Seed of all draws: the same seed gives the same requests at the same times [default: 0]
    #[arg(long)]
    pub seed: Option<u32>,

    /// Requests per second; `inf` sends all at once [default: inf]
    #[arg(long, value_name = "RATE")]
    pub request_rate: Option<String>,

    /// Shape of the gamma distribution of the gaps: 1 is a Poisson process, less is burstier [default: 1.0]
    #[arg(long, value_name = "SHAPE")]
    pub burstiness: Option<String>,

    /// Most requests under way at once; the others wait in the client [default: no cap]
    #[arg(long, value_name = "N")]
    pub max_concurrency: Option<i64>,

    /// Let the rate rise from request to request
    #[arg(long, value_name = "SHAPE")]
    pub ramp_up_strategy: Option<RampStrategy>,

    /// Requests per second at the start of the rise, which may be 0
    #[arg(long, value_name = "RATE")]
    pub ramp_up_start_rps: Option<f64>,

    /// Requests per second at its end
    #[arg(long, value_name = "RATE")]
    pub ramp_up_end_rps: Option<f64>,

    /// Probe requests per second beside the load; 0: none [default: 0]
    #[arg(long, value_name = "RATE")]
    pub probe_request_rate: Option<f64>,

    /// Requests sent before the measured ones [default: 0]
    #[arg(long, value_name = "N")]
    pub num_warmups: Option<usize>,

    /// Seconds to wait for the server, and for one request to succeed; 0 skips both [default: 0]
    #[arg(long, value_name = "SECONDS")]
    pub ready_check_timeout_sec: Option<i64>,

    /// Show no progress
    #[arg(long)]
    pub disable_tqdm: bool,

    /// Profile the server during the run
    #[arg(long)]
    pub profile: bool,
}

/// How a rate rises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RampStrategy {
    /// By the same amount with each request.
    Linear,
    /// By the same factor with each request.
    Exponential,
}

impl RampStrategy {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Exponential => "exponential",
        }
    }
}

impl From<RampStrategy> for RampShape {
    fn from(strategy: RampStrategy) -> Self {
        match strategy {
            RampStrategy::Linear => Self::Linear,
            RampStrategy::Exponential => Self::Exponential,
        }
    }
}
