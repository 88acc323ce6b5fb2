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
}

/// How many rows were skipped for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skips {
    counts: [usize; 5],
    /// Line number of the first line that is no JSON.
    pub(crate) first_bad_line: Option<usize>,
}

impl Skips {
    pub(crate) fn note(&mut self, skip: Skip) {
        self.counts[skip as usize] += 1;
    }

    pub(crate) fn count(&self, skip: Skip) -> usize {
        self.counts[skip as usize]
    }
}

impl fmt::Display for Skips {
    /// As in `5 skipped (3 not a conversation of two turns, 2 too short)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.first_bad_line.map(|line| format!(" from line {line} on"));
        let no_json = format!("no JSON{}", line.unwrap_or_default());
        let reasons: [(Skip, &str); 5] = [
            (Skip::NoJson, &no_json),
            (Skip::FewTurns, "not a conversation of two turns"),
            (Skip::NoText, "without usable text"),
            (Skip::TooShort, "too short"),
            (Skip::TooLong, "longer than --sharegpt-context-len"),
        ];
        let reasons: Vec<String> = reasons
            .into_iter()
            .map(|(skip, reason)| (self.count(skip), reason))
            .filter(|(count, _)| *count > 0)
            .map(|(count, reason)| format!("{count} {reason}"))
            .collect();
        write!(f, "{} skipped", self.counts.iter().sum::<usize>())?;
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
        skips.note(Skip::NoJson);
        skips.note(Skip::TooShort);
        skips.first_bad_line = Some(7);
        assert_eq!(skips.to_string(), "3 skipped (1 no JSON from line 7 on, 2 too short)");
    }
}
