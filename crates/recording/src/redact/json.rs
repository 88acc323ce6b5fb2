//! JSON whose strings are filled in place, as lenient as the decoders.

use super::body::{Filler, is_word};

/// Members whose values are words of the protocol.
const KEPT: [&[u8]; 8] = [
    b"object",
    b"type",
    b"role",
    b"finish_reason",
    b"status",
    b"reason",
    b"event",
    b"incomplete_details",
];

/// Deepest nesting that is followed.
const DEPTH: u32 = 100;

/// Where a value stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A member of an object.
    Member,
    /// One whose value is a word of the protocol.
    Word,
    /// An element of an array.
    Element,
    /// Anywhere below a member about log probabilities: all of it is text, even names and numbers.
    Hidden,
}

/// Fills the strings of a document, and the numbers of its arrays; what is no text stays. `None` for what is no
/// document: then the bytes are as they happen to be.
pub(super) fn fill(bytes: &mut [u8], filler: &Filler) -> Option<()> {
    let mut scan = Scan { bytes, at: 0, filler };
    scan.value(Place::Member, DEPTH)?;
    scan.space();
    (scan.at == scan.bytes.len()).then_some(())
}

struct Scan<'a> {
    bytes: &'a mut [u8],
    at: usize,
    filler: &'a Filler,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        self.space();
        self.takes(byte).then_some(())
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn value(&mut self, place: Place, depth: u32) -> Option<()> {
        let deeper = depth.checked_sub(1)?;
        self.space();
        match self.peek()? {
            b'{' => self.object(place, deeper),
            b'[' => self.array(place, deeper),
            b'"' => {
                let (start, end) = self.string()?;
                let is_word = place == Place::Word && is_word(&self.bytes[start..end]);
                if !is_word {
                    self.fill(start, end);
                }
                Some(())
            }
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            b'N' => self.word(b"NaN"),
            b'I' => self.word(b"Infinity"),
            b'-' if self.bytes.get(self.at + 1) == Some(&b'I') => self.word(b"-Infinity"),
            b'-' | b'0'..=b'9' => {
                let hides = matches!(place, Place::Element | Place::Hidden);
                self.number(hides);
                Some(())
            }
            _ => None,
        }
    }

    fn object(&mut self, place: Place, depth: u32) -> Option<()> {
        self.at += 1;
        self.space();
        if self.takes(b'}') {
            return Some(());
        }
        loop {
            self.space();
            let (start, end) = self.string()?;
            let name = &self.bytes[start..end];
            let below = match place {
                Place::Hidden => Place::Hidden,
                _ if name.windows(7).any(|part| part == b"logprob") => Place::Hidden,
                _ if KEPT.contains(&name) => Place::Word,
                _ => Place::Member,
            };
            // A name that is none may be text as well.
            if place == Place::Hidden || !is_word(name) {
                self.fill(start, end);
            }
            self.expect(b':')?;
            self.value(below, depth)?;
            self.space();
            if !self.takes(b',') {
                return self.expect(b'}');
            }
        }
    }

    fn array(&mut self, place: Place, depth: u32) -> Option<()> {
        let below = if place == Place::Hidden { place } else { Place::Element };
        self.at += 1;
        self.space();
        if self.takes(b']') {
            return Some(());
        }
        loop {
            self.value(below, depth)?;
            self.space();
            if !self.takes(b',') {
                return self.expect(b']');
            }
        }
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        let is_next = self.bytes[self.at..].starts_with(word);
        self.at += word.len();
        is_next.then_some(())
    }

    fn number(&mut self, hides: bool) {
        while let Some(byte @ (b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) = self.peek() {
            if hides && byte.is_ascii_digit() {
                self.bytes[self.at] = b'1';
            }
            self.at += 1;
        }
    }

    /// Where the text of the string lies that begins here.
    fn string(&mut self) -> Option<(usize, usize)> {
        self.takes(b'"').then_some(())?;
        let start = self.at;
        loop {
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
        self.at += 1;
        Some((start, self.at - 1))
    }

    /// Fills a string's text: each character by one that takes as many bytes, here and once it is read.
    fn fill(&mut self, start: usize, end: usize) {
        let mut letters = self.filler.letters();
        let mut rest = &mut self.bytes[start..end];
        while !rest.is_empty() {
            let (size, text) = replacement(rest, |seen| letters.next(seen));
            let (now, later) = rest.split_at_mut(size.clamp(1, rest.len()));
            if let Some(text) = text.filter(|text| text.len() == now.len()) {
                now.copy_from_slice(&text);
            }
            rest = later;
        }
    }
}

/// How many bytes the next character of a string takes, and what stands in its place; `None` where it stays.
fn replacement(text: &[u8], mut letter: impl FnMut(&[u8]) -> u8) -> (usize, Option<Vec<u8>>) {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix(b"\\u")?.get(..4)?;
        let digits = std::str::from_utf8(digits).ok()?;
        u16::from_str_radix(digits, 16).ok()
    };
    match text[0] {
        b'\\' => match (unit(0), unit(6)) {
            (Some(0xd800..0xdc00), Some(0xdc00..0xe000)) => (12, Some(br"\ud83d\ude42".to_vec())),
            // Half a character is read as the sign for none.
            (Some(0xd800..0xe000 | 0xfffd), _) => (6, None),
            (Some(..0x80), _) => {
                let letter = letter(&text[..6]);
                (6, Some(format!("\\u{letter:04x}").into_bytes()))
            }
            (Some(..0x800), _) => (6, Some(br"\u00b7".to_vec())),
            (Some(_), _) => (6, Some(br"\u2022".to_vec())),
            (None, _) => (2, Some(br"\n".to_vec())),
        },
        ..0x20 => (1, None),
        ascii @ ..0x80 => (1, Some(vec![letter(&[ascii])])),
        _ => {
            let is_whole = |size: &usize| {
                text.get(..*size).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok())
            };
            match (2..=4).find(is_whole) {
                Some(2) => (2, Some("·".as_bytes().to_vec())),
                Some(3) if text.starts_with("\u{fffd}".as_bytes()) => (3, None),
                Some(3) => (3, Some("•".as_bytes().to_vec())),
                Some(size) => (size, Some("🙂".as_bytes().to_vec())),
                None => (1, Some(vec![0xff])),
            }
        }
    }
}
