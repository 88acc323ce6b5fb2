//! Prompts that encode to the length asked for.

use rayon::prelude::*;
use servebench_tokens::{Tokenizer, TokensError};
use std::collections::HashSet;

/// Rounds of decoding and encoding before a prompt is taken as close enough: three are usual.
const ROUNDS: usize = 16;

/// A prompt as close to a length as could be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub(crate) text: String,
}

impl Exact {
    /// A text that encodes to as many tokens as `ids` has, special tokens aside.
    ///
    /// Neighbours merge when their text is encoded again, so that the count drifts. Each round
    /// goes on from the ids that the text really has, cuts what is too long and fills what is too
    /// short from `source`. After the last round the closest text is taken.
    pub(crate) fn make(
        mut ids: Vec<u32>,
        mut source: impl Iterator<Item = u32>,
        tokenizer: &Tokenizer,
    ) -> Result<Self, TokensError> {
        let wanted = ids.len();
        let mut closest: Option<(usize, String)> = None;
        for _ in 0..ROUNDS {
            let text = tokenizer.decode(&ids, false)?;
            ids = tokenizer.encode(&text, false)?;
            let error = ids.len().abs_diff(wanted);
            if closest.as_ref().is_none_or(|(least, _)| error < *least) {
                closest = Some((error, text));
            }
            if error == 0 {
                break;
            }
            ids.truncate(wanted);
            ids.extend(source.by_ref().take(wanted - ids.len()));
        }
        Ok(Self { text: closest.map(|(_, text)| text).unwrap_or_default() })
    }
}

/// The ids a prompt may be made of: the vocabulary without added tokens and, for text, without
/// ids that do not survive decoding and encoding even on their own (halves of characters).
///
/// Never empty: if nothing is left, the filter is taken back.
pub(crate) fn usable_ids(tokenizer: &Tokenizer, as_text: bool) -> Vec<u32> {
    let added: HashSet<u32> = tokenizer.added_ids().into_iter().collect();
    let all = tokenizer.vocabulary_ids();
    let plain: Vec<u32> = all.iter().copied().filter(|id| !added.contains(id)).collect();
    let plain = if plain.is_empty() { all } else { plain };
    if !as_text {
        return plain;
    }
    let survives = |id: u32| {
        let text = tokenizer.decode(&[id], false).ok()?;
        (tokenizer.encode(&text, false).ok()? == [id]).then_some(id)
    };
    let kept: Vec<u32> = plain.par_iter().copied().filter_map(survives).collect();
    if kept.is_empty() { plain } else { kept }
}
