//! What can be wrong with a picture that is asked for.

/// Why a picture could not be drawn.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlotError {
    /// A filter or a bin is not written as it should be.
    #[error("`{text}` is not {wanted}")]
    Expression {
        /// What was written.
        text: String,
        /// What is understood.
        wanted: &'static str,
    },
    /// A scale nobody knows.
    #[error("`{0}` is no scale: there are linear, log and sqrt")]
    Scale(String),
    /// No run has the variable.
    #[error("no run has a value `{key}`; there are {known}")]
    Missing {
        /// The variable.
        key: String,
        /// Those that runs have, as a list.
        known: String,
    },
    /// A run lacks a variable by which runs are grouped.
    #[error("run {run} has no value `{key}` to be grouped by")]
    Ungrouped {
        /// The variable.
        key: String,
        /// The run's place in the input, from 0.
        run: usize,
    },
    /// A number is needed and something else is there.
    #[error("`{key}` of run {run} is {found}, not a number")]
    NotANumber {
        /// The variable.
        key: String,
        /// The run's place in the input, from 0.
        run: usize,
        /// What is there, as JSON.
        found: String,
    },
    /// There is nothing to draw.
    #[error("no run to draw: {0}")]
    Nothing(&'static str),
}
