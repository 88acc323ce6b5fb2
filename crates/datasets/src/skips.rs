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

/// Where a row is in its file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    /// The line that it is.
    Line(usize),
    /// Its number, where lines tell nothing.
    Row(usize),
}

impl At {
    fn number(self) -> usize {
        match self {
            Self::Line(number) | Self::Row(number) => number,
        }
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Row(number) => write!(f, "row {number}"),
        }
    }
}

/// How many rows were skipped for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skips {
    counts: [usize; REASONS],
    /// The first row skipped for each reason.
    first: [Option<At>; REASONS],
}

impl Skips {
    /// Notes a row, in whatever order they are looked at.
    pub(crate) fn note(&mut self, skip: Skip, at: At) {
        self.counts[skip as usize] += 1;
        let first = self.first[skip as usize].get_or_insert(at);
        if at.number() < first.number() {
            *first = at;
        }
    }

    pub(crate) fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    pub(crate) fn count(&self, skip: Skip) -> usize {
        self.counts[skip as usize]
    }
}

impl fmt::Display for Skips {
    /// As in `5 skipped (3 not a conversation of two turns from line 2 on, 2 too short from line 4 on)`.
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
            .map(|(skip, reason)| (self.count(skip), reason, self.first[skip as usize]))
            .filter(|(count, ..)| *count > 0)
            .map(|(count, reason, first)| match first {
                Some(at) => format!("{count} {reason} from {at} on"),
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
        skips.note(Skip::TooShort, At::Row(5));
        skips.note(Skip::NoJson, At::Line(7));
        skips.note(Skip::TooShort, At::Row(3));
        let said = "3 skipped (1 no JSON from line 7 on, 2 too short from row 3 on)";
        assert_eq!(skips.to_string(), said);
        skips.note(Skip::NoJson, At::Line(9));
        assert!(skips.to_string().contains("2 no JSON from line 7 on"), "{skips}");
    }
}
