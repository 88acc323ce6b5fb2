//! When a run ends before everything is sent and answered.

use super::values;
use clap::Args;

/// When a run ends before everything is sent and answered.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "End of the run")]
pub struct EndingArgs {
    /// Send nothing any more after this long; the run ends earlier when all --num-prompts are sent
    ///
    /// Requests under way then have --grace-period to finish. No rows are made up: --num-prompts stays the
    /// most that is sent, so give more than fit into the time. The result is complete and says
    /// `"ended_by": "duration_limit"`.
    #[arg(long, value_name = "SECONDS", value_parser = values::positive_time)]
    pub duration: Option<f64>,

    /// How long requests that are under way at the end of --duration may take to finish [default: 30]
    ///
    /// What is not over then is cut off and counted as `cancelled`.
    #[arg(long, value_name = "SECONDS", requires = "duration", value_parser = values::not_negative)]
    pub grace_period: Option<f64>,

    /// End a run that hangs: nothing has come for any request under way for this long, at least 1; 0: never
    /// [default: 1800]
    ///
    /// A byte of any reply counts as progress, a comment too. What is under way is cut off as `cancelled`, the
    /// result is written with `partial` and `"ended_by": "no_progress"`, the exit code is 8. Half a minute
    /// of such silence is told before, with the requests that the run waits for.
    #[arg(long, value_name = "SECONDS", value_parser = values::silence)]
    pub no_progress_timeout: Option<f64>,
}
