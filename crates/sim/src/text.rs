//! Output text: a fixed paragraph, one piece per token, whose any range is a memory copy.

use crate::TextStyle;

const PARAGRAPH: &str = "a river of small words runs past the window while the clock keeps its \
     even beat and nobody asks where the water goes or why the stones stay warm after dark";

/// Bytes in the table from which text is copied; long, so that long ranges are few copies.
const TABLE: usize = 1 << 14;

/// The pieces that make up text and token ids.
#[derive(Debug)]
pub(crate) struct Pieces {
    text: Cycle,
    ids: Cycle,
}

impl Pieces {
    pub(crate) fn new(style: TextStyle) -> Self {
        let pieces: Vec<String> = match style {
            TextStyle::Bytes => PARAGRAPH.chars().map(String::from).collect(),
            TextStyle::Words => PARAGRAPH.split(' ').map(|word| format!(" {word}")).collect(),
        };
        let ids = pieces.iter().enumerate().map(|(place, piece)| match style {
            TextStyle::Bytes => format!("{},", piece.as_bytes().first().copied().unwrap_or(0)),
            TextStyle::Words => format!("{},", 256 + place),
        });
        Self { ids: Cycle::new(ids), text: Cycle::new(pieces.iter().cloned()) }
    }

    /// Appends the text of tokens `from..to`. It holds nothing that JSON escapes.
    pub(crate) fn write_text(&self, out: &mut Vec<u8>, from: u32, to: u32) {
        self.text.write(out, from, to);
    }

    /// Appends the ids of tokens `from..to`, separated by commas.
    pub(crate) fn write_ids(&self, out: &mut Vec<u8>, from: u32, to: u32) {
        self.ids.write(out, from, to);
        if from < to {
            out.pop();
        }
    }
}

/// An endless repetition of pieces.
#[derive(Debug)]
struct Cycle {
    /// The repetition's beginning: a whole number of rounds.
    table: Vec<u8>,
    /// Where each piece of one round begins, and where the round ends.
    offsets: Vec<u64>,
}

impl Cycle {
    fn new(pieces: impl Iterator<Item = String>) -> Self {
        let mut round = String::new();
        let mut offsets = vec![0];
        for piece in pieces {
            round.push_str(&piece);
            offsets.push(round.len() as u64);
        }
        let table = round.repeat(TABLE.div_ceil(round.len().max(1))).into_bytes();
        Self { table, offsets }
    }

    fn offset(&self, token: u32) -> u64 {
        let count = self.offsets.len() - 1;
        let round_bytes = self.offsets.last().copied().unwrap_or(0);
        let (round, place) = (token as usize / count, token as usize % count);
        round as u64 * round_bytes + self.offsets.get(place).copied().unwrap_or(0)
    }

    fn write(&self, out: &mut Vec<u8>, from: u32, to: u32) {
        let (mut at, end) = (self.offset(from), self.offset(to));
        while at < end {
            let start = (at % self.table.len() as u64) as usize;
            let bytes = self.table.get(start..).unwrap_or_default();
            let bytes = bytes.get(..(end - at) as usize).unwrap_or(bytes);
            out.extend_from_slice(bytes);
            at += bytes.len() as u64;
        }
    }
}

/// Appends tokens `from..to` of a tool call's arguments, a JSON object of `total` bytes (one per
/// token), with its quotes escaped for use inside a JSON string. Below
/// [`TOOL_MINIMUM`] tokens the object is cut off.
pub(crate) fn write_tool_arguments(out: &mut Vec<u8>, total: u32, from: u32, to: u32) {
    let close = if total < TOOL_MINIMUM { u32::MAX } else { total - 2 };
    for token in from..to {
        let byte = match token {
            0..9 => TOOL_OPENING[token as usize],
            _ if token == close => b'"',
            _ if token > close => b'}',
            _ => b'x',
        };
        if byte == b'"' {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

const TOOL_OPENING: &[u8; 9] = b"{\"text\":\"";

/// Fewest tokens in which a tool call's arguments are complete.
pub(crate) const TOOL_MINIMUM: u32 = 11;

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &Pieces, from: u32, to: u32) -> String {
        let mut out = Vec::new();
        pieces.write_text(&mut out, from, to);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn ranges_join_and_count_one_byte_per_token() {
        let pieces = Pieces::new(TextStyle::Bytes);
        let whole = text(&pieces, 0, 50_000);
        assert_eq!(whole.len(), 50_000);
        assert!(whole.is_ascii() && !whole.contains(['"', '\\']));
        assert_eq!(text(&pieces, 0, 33_333) + &text(&pieces, 33_333, 50_000), whole);
        let mut ids = Vec::new();
        pieces.write_ids(&mut ids, 0, 300);
        let ids: Vec<u8> = serde_json::from_slice(&[b"[", &ids[..], b"]"].concat()).expect("ids");
        assert_eq!(ids, whole.as_bytes()[..300]);
    }

    #[test]
    fn words_are_whole() {
        let pieces = Pieces::new(TextStyle::Words);
        assert_eq!(text(&pieces, 0, 3), " a river of");
        assert_eq!(text(&pieces, 1, 2), " river");
    }

    #[test]
    fn tool_arguments_are_json_of_the_asked_length() {
        for total in [TOOL_MINIMUM, 12, 100] {
            let mut out = Vec::new();
            write_tool_arguments(&mut out, total, 0, 5);
            write_tool_arguments(&mut out, total, 5, total);
            let inner: String =
                serde_json::from_slice(&[b"\"", &out[..], b"\""].concat()).expect("a JSON string");
            assert_eq!(inner.len(), total as usize);
            let object: serde_json::Value = serde_json::from_str(&inner).expect("a JSON object");
            assert_eq!(object["text"].as_str().map(str::len), Some(total as usize - 11));
        }
    }
}
