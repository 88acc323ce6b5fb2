//! The console block of a steady state.

use crate::table::Table;
use servebench_metrics::SteadyState;

/// The block that SGLang's `steady_state_serving` prints, to the character.
///
/// The one row that may have no number is that of the retokenized throughput, where the client's
/// tokenizer counted nothing: it shows `N/A`.
pub fn steady_table(state: &SteadyState) -> String {
    let mut table = Table(String::from("\n"));
    table.banner(" Steady-State Result ", '=');
    table.number("Concurrency ratio:", Some(state.concurrency_ratio));
    table.number("Measurement duration (s):", Some(state.duration));
    table.row("Minimum concurrency:", state.concurrency_threshold);
    table.row("Completed requests:", state.completed);
    table.row("Input tokens:", state.total_input);
    table.number("Input token throughput (tok/s):", Some(state.input_throughput));
    table.number("Generated tokens:", Some(state.total_output));
    table.number("Output token throughput (tok/s):", Some(state.output_throughput));
    let label = "Output throughput, retokenized (tok/s):";
    match state.output_throughput_retokenized {
        Some(throughput) => table.number(label, Some(throughput)),
        None => table.row(label, "N/A"),
    }
    table.number("Average concurrency:", Some(state.average_concurrency));
    table.row("Peak concurrency:", state.peak_concurrency);
    table.number("Peak output throughput (tok/s):", Some(state.peak_output_throughput));
    table.banner("", '=');
    table.0
}
