//! What a run was like over its time: its steady state, and its picture.

use crate::exit::OrCode;
use crate::{Code, Failure, Io, Plan};
use servebench_metrics::{ItlRule, Measured, Series, SteadyState};
use servebench_report::{append_line, plot, plot_steps, steady_table};

/// Width of a picture that goes nowhere near a terminal.
const COLUMNS: usize = 80;

/// The steady state of a run, if one was asked for. Why there is none is said: the run's other numbers
/// stand without.
pub(crate) fn steady_state(
    plan: &Plan,
    requests: &[Measured<'_>],
    rule: ItlRule,
    io: &Io,
) -> Option<SteadyState> {
    let ratio = plan.report.steady_state_concurrency_ratio?;
    let state = SteadyState::of(requests, ratio, rule);
    state.inspect_err(|error| io.say(format_args!("no steady state: {error}"))).ok()
}

/// Prints the block of a steady state and appends it to its file, if it has one.
pub(crate) fn report_steady(plan: &Plan, state: &SteadyState, io: &Io) -> Result<(), Failure> {
    io.print(steady_table(state).trim_end()).or_code(Code::Output)?;
    let Some(file) = &plan.report.steady_state_output_file else { return Ok(()) };
    let line = serde_json::to_string(state).or_code(Code::Bug)?;
    append_line(file, &line).or_code(Code::Output)?;
    io.say(format_args!("steady state appended to {}", file.display()));
    Ok(())
}

/// Prints the pictures of a run.
pub(super) fn print_plot(requests: &[Measured<'_>], tokens: bool, io: &Io) -> Result<(), Failure> {
    let columns = io.columns().unwrap_or(COLUMNS);
    let series = Series::of(requests, plot_steps(columns));
    if series.in_flight.is_empty() {
        io.say("no plot: no request succeeded");
        return Ok(());
    }
    let drawn = plot(&series, tokens, columns);
    io.print(format_args!("\n{}", drawn.trim_end())).or_code(Code::Output)
}
