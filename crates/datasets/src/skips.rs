//! Rows that were not used, and why.

use std::fmt;

/// Why a row is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Skip {
    /// A line that is no JSON.
    NoJson,
    /// Not a conversation of at least two turns.
    FewTurns,
    /// A turn without text that could be sent.
    NoText,
    /// Fewer tokens than a benchmark can use.
    TooShort,
    /// More tokens than asked for.
    TooLong,
    /// A request without messages.
    NoMessages,
    /// A request whose limit is no number of tokens.
    BadLimit,
    /// A row without turns.
    NoTurns,
    /// A row of a category that was not asked for.
    OtherCategory,
    /// A row without a picture.
    NoPicture,
    /// A picture that cannot be read.
    BadPicture,
    /// A picture that the model's processor refuses.
    NotForModel,
}

/// How many reasons there are.
const REASONS: usize = 12;

/// How many rows were skipped for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skips {
    counts: [usize; REASONS],
    /// Line of the first row skipped for each reason, where rows are lines.
    first_lines: [Option<usize>; REASONS],
}

impl Skips {
    pub(crate) fn note(&mut self, skip: Skip) {
        self.counts[skip as usize] += 1;
    }

    /// Notes a row that is the line of that number.
    pub(crate) fn note_at(&mut self, skip: Skip, line: usize) {
        self.note(skip);
        self.first_lines[skip as usize].get_or_insert(line);
    }

    pub(crate) fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    pub(crate) fn count(&self, skip: Skip) -> usize {
        self.counts[skip as usize]
    }
}

impl fmt::Display for Skips {
    /// As in `5 skipped (3 not a conversation of two turns, 2 too short)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons: [(Skip, &str); REASONS] = [
            (Skip::NoJson, "no JSON"),
            (Skip::FewTurns, "not a conversation of two turns"),
            (Skip::NoText, "without usable text"),
            (Skip::TooShort, "too short"),
            (Skip::TooLong, "longer than --sharegpt-context-len"),
            (Skip::NoMessages, "without messages"),
            (Skip::BadLimit, "with a max_tokens that is no positive number"),
            (Skip::NoTurns, "without turns"),
            (Skip::OtherCategory, "of another category"),
            (Skip::NoPicture, "without a picture"),
            (Skip::BadPicture, "with a picture that is no PNG or JPEG that can be read"),
            (Skip::NotForModel, "with a picture of a shape that the model does not take"),
        ];
        let reasons: Vec<String> = reasons
            .into_iter()
            .map(|(skip, reason)| (self.count(skip), reason, self.first_lines[skip as usize]))
            .filter(|(count, ..)| *count > 0)
            .map(|(count, reason, line)| match line {
                Some(line) => format!("{count} {reason} from line {line} on"),
                None => format!("{count} {reason}"),
            })
            .collect();
        write!(f, "{} skipped", self.total())?;
        if reasons.is_empty() { Ok(()) } else { write!(f, " ({})", reasons.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_apart() {
        let mut skips = Skips::default();
        assert_eq!(skips.to_string(), "0 skipped");
        skips.note(Skip::TooShort);
        skips.note_at(Skip::NoJson, 7);
        skips.note(Skip::TooShort);
        assert_eq!(skips.to_string(), "3 skipped (1 no JSON from line 7 on, 2 too short)");
        skips.note_at(Skip::NoJson, 9);
        assert!(skips.to_string().contains("2 no JSON from line 7 on"), "{skips}");
    }
}
