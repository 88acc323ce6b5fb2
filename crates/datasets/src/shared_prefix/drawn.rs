//! All that is random about `generated-shared-prefix`: token ids, lengths, order.

use super::SharedPrefixOptions;
use crate::random::draw_lengths;
use servebench_core::random::{Draws, NumpyGenerator, PythonRandom};

/// The set as token ids, in the order in which it is sent.
pub(super) struct Drawn {
    /// System prompt of each group.
    pub(super) systems: Vec<Vec<u32>>,
    pub(super) rows: Vec<Row>,
}

/// One prompt or conversation.
pub(super) struct Row {
    pub(super) group: usize,
    /// Question of each turn; at least one.
    pub(super) questions: Vec<Vec<u32>>,
    pub(super) output_len: u32,
}

impl Drawn {
    /// Makes the Python tool's draws in its order; `vocabulary` must not be empty.
    pub(super) fn draw(
        options: &SharedPrefixOptions,
        vocabulary: &[u32],
        draws: &mut Draws,
    ) -> Self {
        let (ratio, groups, rows) =
            (options.range_ratio, options.groups as usize, options.prompts());
        let turns = options.turns as usize;
        let mut lengths = |full, n| draw_lengths(full, ratio, n, &mut draws.numpy);
        let systems = lengths(options.system_prompt_len, groups);
        let questions = lengths(options.question_len, rows * turns);
        let outputs = lengths(options.output_len, rows);

        let python = &mut draws.python;
        let systems = systems.into_iter().map(|len| ids(len, vocabulary, python)).collect();
        let mut questions = questions.into_iter().map(|len| ids(len, vocabulary, python));
        let groups = assignment(options);
        let mut rows: Vec<Row> = groups
            .into_iter()
            .zip(outputs)
            .map(|(group, output_len)| {
                let questions = questions.by_ref().take(turns).collect();
                Row { group, questions, output_len }
            })
            .collect();
        if !options.ordered {
            python.shuffle(&mut rows);
        }
        Self { systems, rows }
    }

    /// Tokens of all distinct texts.
    pub(super) fn tokens(&self) -> usize {
        let questions = self.rows.iter().flat_map(|row| &row.questions);
        self.systems.iter().chain(questions).map(Vec::len).sum()
    }
}

/// `len` independent ids of the vocabulary.
fn ids(len: u32, vocabulary: &[u32], python: &mut PythonRandom) -> Vec<u32> {
    let chosen = python.choices_index(vocabulary.len() as u32, len as usize);
    chosen.into_iter().map(|index| vocabulary[index as usize]).collect()
}

/// The group of each row, before the shuffle.
fn assignment(options: &SharedPrefixOptions) -> Vec<usize> {
    let rows = options.prompts();
    let Some(alpha) = options.zipf_alpha else {
        return (0..rows).map(|row| row / options.prompts_per_group as usize).collect();
    };
    let weights: Vec<f64> = (1..=options.groups).map(|rank| f64::from(rank).powf(-alpha)).collect();
    let sum: f64 = weights.iter().sum();
    let shares: Vec<f64> = weights.into_iter().map(|weight| weight / sum).collect();
    NumpyGenerator::new(options.zipf_seed).choices_weighted(&shares, rows)
}
