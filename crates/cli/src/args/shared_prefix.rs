//! Groups of prompts that begin alike.

use super::values;
use clap::{Args, ValueEnum};

/// The shape of `generated-shared-prefix`.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Dataset generated-shared-prefix")]
pub struct SharedPrefixArgs {
    /// Groups, each with a system prompt of its own [default: 64]
    #[arg(long, value_name = "N")]
    pub gsp_num_groups: Option<u32>,

    /// Prompts of each group; there are groups times this many requests [default: 16]
    #[arg(long, value_name = "N")]
    pub gsp_prompts_per_group: Option<u32>,

    /// Longest system prompt [default: 2048]
    #[arg(long, value_name = "TOKENS")]
    pub gsp_system_prompt_len: Option<u32>,

    /// Longest question [default: 128]
    #[arg(long, value_name = "TOKENS")]
    pub gsp_question_len: Option<u32>,

    /// Longest output [default: 256]
    #[arg(long, value_name = "TOKENS")]
    pub gsp_output_len: Option<u32>,

    /// Shortest length as a share of the longest; lengths are drawn evenly between [default: 1.0]
    #[arg(long, value_name = "RATIO", value_parser = values::ratio)]
    pub gsp_range_ratio: Option<f64>,

    /// Questions of each conversation, sent one after the other with the server's replies (chat
    /// backends) [default: 1]
    #[arg(long, value_name = "N")]
    pub gsp_num_turns: Option<u32>,

    /// Take prompts to have the length asked for instead of counting their tokens
    #[arg(long)]
    pub gsp_fast_prepare: bool,

    /// Send each group's key in the header X-SMG-Routing-Key
    #[arg(long)]
    pub gsp_send_routing_key: bool,

    /// Send group after group instead of shuffled
    #[arg(long)]
    pub gsp_ordered: bool,

    /// How prompts are spread over the groups
    #[arg(long, value_name = "NAME", default_value = "uniform")]
    pub gsp_group_distribution: GroupDistribution,

    /// Exponent of `zipf`: the group of rank r is drawn with probability proportional to r^-ALPHA
    #[arg(long, value_name = "ALPHA", value_parser = values::positive)]
    pub gsp_zipf_alpha: Option<f64>,
}

/// How prompts are spread over groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GroupDistribution {
    /// The same number for each.
    #[default]
    Uniform,
    /// Drawn, the first group most often.
    Zipf,
}
