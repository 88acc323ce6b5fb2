//! Which flags the Python tools have, and what each of them is here.
//!
//! A [`Tool`] is a Python tool, the recording of its parser (`tests/fixtures/upstream`) and our command
//! in its place. [`Tool::rows`] compares the two flag by flag; where they differ, [`verdicts`] says how
//! and why. The page of `docs/src/reference` and the tests are both made of these rows.

mod compare;
mod tools;
pub mod verdicts;

pub use compare::{Difference, differences, has};
pub use tools::{Flag, SGLANG, Tool, VLLM};
pub use verdicts::Verdict;

use servebench_cli::Refused;

/// An upstream flag with what it is here.
#[derive(Debug)]
pub struct Row {
    /// The flag as its tool's parser has it.
    pub flag: Flag,
    /// Whether our command has it.
    pub defined: bool,
    /// In what it differs.
    pub differences: Vec<Difference>,
    /// Why it is refused, if it is.
    pub refused: Option<&'static Refused>,
    /// What is said about it, if it is not the same.
    pub said: Option<Verdict>,
}

impl Tool {
    /// Every flag of the tool's own, in the order of its name.
    pub fn rows(&self) -> Vec<Row> {
        let command = self.command();
        let row = |flag: Flag| Row {
            defined: has(&command, &flag.name),
            differences: differences(&command, &flag),
            refused: Refused::named(self.known_as, &flag.name),
            said: self.said_about(&flag.name),
            flag,
        };
        self.flags().into_iter().map(row).collect()
    }

    /// The verdict on a flag, if there is one.
    pub fn said_about(&self, flag: &str) -> Option<Verdict> {
        verdicts::of(self.name).find(|verdict| verdict.flag == flag)
    }
}
