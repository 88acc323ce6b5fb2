//! Where the rows of a file of JSON are, found without reading them.

use std::io::{self, BufRead};

const BOM: [u8; 3] = [0xef, 0xbb, 0xbf];

/// Where the text of a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: u64,
    pub(super) len: u64,
    /// The line it begins in, from 1.
    pub(super) line: usize,
}

/// A line, and what is wrong there.
pub(super) type Problem = (usize, &'static str);

/// Where the rows are, in their order: the lines that are not blank, or the values of an array.
pub(super) fn index(mut reader: impl BufRead) -> io::Result<Result<Vec<Span>, Problem>> {
    let mut finder = Finder::default();
    loop {
        let bytes = reader.fill_buf()?;
        if bytes.is_empty() {
            return Ok(finder.end());
        }
        let read = bytes.len();
        for &byte in bytes {
            if let Err(problem) = finder.feed(byte) {
                return Ok(Err((finder.line, problem)));
            }
        }
        reader.consume(read);
    }
}

#[derive(Debug)]
struct Finder {
    state: State,
    /// Bytes fed so far.
    at: u64,
    line: usize,
    spans: Vec<Span>,
    /// Where the row that is being read begins, and its line.
    start: Option<(u64, usize)>,
    /// Behind its last byte that is not blank.
    end: u64,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// What comes first decides: an array, or an object a line.
    Start,
    Lines,
    Array {
        depth: u32,
        text: Text,
        after_comma: bool,
    },
    AfterArray,
}

/// Whether what is read is a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Text {
    Outside,
    Inside,
    Escaped,
}

impl Default for Finder {
    fn default() -> Self {
        let (state, spans) = (State::Start, Vec::new());
        Self { state, at: 0, line: 1, spans, start: None, end: 0 }
    }
}

impl Finder {
    fn feed(&mut self, byte: u8) -> Result<(), &'static str> {
        let blank = byte.is_ascii_whitespace();
        match self.state {
            State::Start if blank || BOM.get(self.at as usize) == Some(&byte) => {}
            State::Start if byte == b'[' => {
                self.state = State::Array { depth: 0, text: Text::Outside, after_comma: false };
            }
            State::Start => {
                self.state = State::Lines;
                self.take();
            }
            // Python ends a line at a lone carriage return too.
            State::Lines if matches!(byte, b'\n' | b'\r') => self.close(),
            State::Lines | State::AfterArray if blank => {}
            State::Lines => self.take(),
            State::Array { depth, text, after_comma } => {
                self.state = self.in_array(byte, depth, text, after_comma)?;
            }
            State::AfterArray => return Err("there is more after the end of the array"),
        }
        self.at += 1;
        self.line += usize::from(byte == b'\n');
        Ok(())
    }

    fn in_array(
        &mut self,
        byte: u8,
        depth: u32,
        text: Text,
        after_comma: bool,
    ) -> Result<State, &'static str> {
        let ends = depth == 0 && text == Text::Outside && matches!(byte, b',' | b']');
        if ends {
            let nothing = self.start.is_none();
            if nothing && (byte == b',' || after_comma) {
                return Err("a row is missing beside a comma");
            }
            self.close();
            return Ok(match byte {
                b',' => State::Array { depth, text, after_comma: true },
                _ => State::AfterArray,
            });
        }
        if !byte.is_ascii_whitespace() {
            self.take();
        }
        let next = match (text, byte) {
            (Text::Inside, b'\\') => Text::Escaped,
            (Text::Inside, b'"') => Text::Outside,
            (Text::Outside, b'"') | (Text::Inside | Text::Escaped, _) => Text::Inside,
            (Text::Outside, _) => Text::Outside,
        };
        let depth = match (text, byte) {
            (Text::Outside, b'[' | b'{') => depth.saturating_add(1),
            // What closes more than was opened is found when the row is read.
            (Text::Outside, b']' | b'}') => depth.saturating_sub(1),
            _ => depth,
        };
        Ok(State::Array { depth, text: next, after_comma })
    }

    /// The byte at hand belongs to a row.
    fn take(&mut self) {
        self.start.get_or_insert((self.at, self.line));
        self.end = self.at + 1;
    }

    fn close(&mut self) {
        if let Some((start, line)) = self.start.take() {
            self.spans.push(Span { start, len: self.end - start, line });
        }
    }

    fn end(mut self) -> Result<Vec<Span>, Problem> {
        if matches!(self.state, State::Array { .. }) {
            return Err((self.line, "the array has no end"));
        }
        self.close();
        Ok(self.spans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(&str, usize)>, Problem> {
        let spans = index(text.as_bytes()).unwrap()?;
        let row = |span: Span| {
            let start = span.start as usize;
            (&text[start..start + span.len as usize], span.line)
        };
        Ok(spans.into_iter().map(row).collect())
    }

    #[test]
    fn lines_and_arrays_are_told_apart() {
        assert_eq!(
            rows("\u{feff}{} \n\n \t{1}\r{2}\r\n{3"),
            Ok(vec![("{}", 1), ("{1}", 3), ("{2}", 3), ("{3", 4)])
        );
        let array = "\n[ {\"a\": \"],\\\"[\"},\n [1, [2]] , 3\n]\n";
        assert_eq!(rows(array), Ok(vec![("{\"a\": \"],\\\"[\"}", 2), ("[1, [2]]", 3), ("3", 3)]));
        for empty in ["", " \n", "[]", "\u{feff}[ ]\n"] {
            assert_eq!(rows(empty), Ok(Vec::new()), "{empty}");
        }
    }

    #[test]
    fn a_broken_array_is_located() {
        let missing = Err((2, "a row is missing beside a comma"));
        for text in ["[1,\n]", "[\n,1]", "[1,\n,2]"] {
            assert_eq!(rows(text), missing, "{text}");
        }
        for text in ["[\n1", "[\n\"]", "[\n{]"] {
            assert_eq!(rows(text), Err((2, "the array has no end")), "{text}");
        }
        assert_eq!(rows("[]\n x"), Err((2, "there is more after the end of the array")));
    }
}
