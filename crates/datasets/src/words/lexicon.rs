//! Words that are one token each, wherever they stand.

use crate::DatasetError;
use rayon::prelude::*;
use servebench_tokens::Tokenizer;
use std::collections::HashSet;

/// Fewer words than this make no prompts that differ.
const LEAST: usize = 16;
/// As many words are enough; where there are more, those found first are taken.
const ENOUGH: usize = 4096;
/// A vocabulary is looked through in so many rounds, every so-manieth token at a time, so that the
/// words come from all of it and the larger part of a large one is not looked at.
const ROUNDS: u32 = 16;
/// Words that are tried in one text. One that is joined or split spoils it, then halves are tried.
const RUN: usize = 64;
/// Pairs of words by which the way to join them is chosen.
const TRIALS: usize = 64;
/// Longest word with what stands before it, in bytes: copying a fixed size is fast.
const LONGEST: usize = 16;

/// How vocabularies write the space before a word: as it is, byte-level, sentencepiece.
const SPACES: [char; 3] = [' ', 'Ġ', '▁'];

/// Words, and how they are put together: `n` of them encode to `n` tokens.
#[derive(Clone, Debug)]
pub(super) struct Lexicon {
    words: Vec<Word>,
    joint: Joint,
}

/// A token, and how it is written where it is not the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Word {
    id: u32,
    length: u8,
    bytes: [u8; LONGEST],
}

/// Where spaces stand between words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Joint {
    /// Before each word: byte-level vocabularies take the space into the word's token.
    Before,
    /// Between two words: the tokenizer puts one before the text itself, or drops them.
    Between,
    /// Nowhere: bytes need none.
    Nowhere,
}

impl Lexicon {
    /// Finds the words of a vocabulary: the same ones on any number of threads.
    pub(super) fn of(tokenizer: &Tokenizer) -> Result<Self, DatasetError> {
        let candidates = candidates(tokenizer);
        let joint = Joint::choose(&candidates, tokenizer);
        let words: Vec<Word> = candidates
            .into_iter()
            .map(|word| joint.spell(word))
            .collect::<Vec<_>>()
            .par_chunks(RUN)
            .flat_map_iter(|run| stable(run, joint, tokenizer))
            .copied()
            .collect();
        if words.len() < LEAST {
            let (tokenizer, found) = (tokenizer.name().to_owned(), words.len());
            return Err(DatasetError::NoWords { tokenizer, found });
        }
        Ok(Self { words, joint })
    }

    /// How many words there are.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The text of the words at these places.
    pub(super) fn text(&self, picks: impl Iterator<Item = usize>) -> String {
        self.joint.text(picks.map(|pick| &self.words[pick]))
    }

    /// The tokens of the words at these places.
    pub(super) fn ids(&self, picks: impl Iterator<Item = usize>) -> Vec<u32> {
        picks.map(|pick| self.words[pick].id).collect()
    }
}

impl Word {
    /// The word of a token that is written as lowercase ASCII letters, and whether the vocabulary
    /// writes a space before them.
    fn new(id: u32, piece: &str) -> Option<(bool, Self)> {
        let bare = piece.strip_prefix(SPACES);
        let letters = bare.unwrap_or(piece);
        if letters.is_empty() || !letters.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let mut bytes = [b' '; LONGEST];
        bytes.get_mut(1..=letters.len())?.copy_from_slice(letters.as_bytes());
        Some((bare.is_some(), Self { id, length: letters.len() as u8 + 1, bytes }))
    }
}

impl Joint {
    const ALL: [Self; 3] = [Self::Before, Self::Between, Self::Nowhere];

    /// The way to join words that keeps most pairs whole; of equals, the first.
    fn choose(candidates: &[Word], tokenizer: &Tokenizer) -> Self {
        let step = candidates.len().div_ceil(2 * TRIALS).max(1);
        let whole = |joint: Self| {
            let pair = |pair: &[Word]| [joint.spell(pair[0]), joint.spell(pair[1])];
            let pairs = candidates.chunks_exact(2).step_by(step).map(pair);
            pairs.filter(|pair| joint.holds(pair, tokenizer)).count()
        };
        let [first, rest @ ..] = Self::ALL.map(|joint| (joint, whole(joint)));
        rest.into_iter().fold(first, |best, next| if next.1 > best.1 { next } else { best }).0
    }

    /// A word as it stands behind others.
    fn spell(self, mut word: Word) -> Word {
        if self == Self::Nowhere {
            word.bytes.rotate_left(1);
            word.length -= 1;
        }
        word
    }

    fn text<'a>(self, words: impl Iterator<Item = &'a Word>) -> String {
        let mut text = Vec::with_capacity(words.size_hint().0 * 8 + LONGEST);
        for word in words {
            let end = text.len() + usize::from(word.length);
            text.extend_from_slice(&word.bytes);
            text.truncate(end);
        }
        if self == Self::Between && !text.is_empty() {
            text.remove(0);
        }
        // It is ASCII.
        String::from_utf8(text).unwrap_or_default()
    }

    /// Whether these words encode to themselves, one token each.
    fn holds(self, words: &[Word], tokenizer: &Tokenizer) -> bool {
        let ids = tokenizer.encode(&self.text(words.iter()), false);
        ids.is_ok_and(|ids| ids.into_iter().eq(words.iter().map(|word| word.id)))
    }
}

/// Tokens that are written as lowercase ASCII letters behind a space; without one if the
/// vocabulary has no such tokens (bytes, word pieces).
fn candidates(tokenizer: &Tokenizer) -> Vec<Word> {
    let added: HashSet<u32> = tokenizer.added_ids().into_iter().collect();
    let (mut spaced, mut bare) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let ids = (0..tokenizer.vocab_size() / ROUNDS + 1).into_par_iter();
        let found: Vec<(bool, Word)> = ids
            .map(|at| at * ROUNDS + round)
            .filter(|id| !added.contains(id))
            .filter_map(|id| Word::new(id, &tokenizer.piece(id)?))
            .collect();
        for (is_spaced, word) in found {
            if is_spaced { spaced.push(word) } else { bare.push(word) }
        }
        if spaced.len() >= ENOUGH {
            break;
        }
    }
    let mut words = if spaced.len() < LEAST { bare } else { spaced };
    words.truncate(ENOUGH);
    words
}

/// The words of a run that stay whole among the others.
fn stable<'a>(run: &'a [Word], joint: Joint, tokenizer: &Tokenizer) -> Vec<&'a Word> {
    if joint.holds(run, tokenizer) {
        return run.iter().collect();
    }
    if run.len() < 2 {
        return Vec::new();
    }
    let (left, right) = run.split_at(run.len() / 2);
    let mut words = stable(left, joint, tokenizer);
    words.extend(stable(right, joint, tokenizer));
    words
}
