//! Bodies that a server has compressed, decoded as they come.
//!
//! None is asked for: compressing takes the server time and holds tokens back. What comes compressed
//! all the same (a gateway does that, or a header of the user's asks for it) is understood.

use crate::wire::{Ended, Head, Visit};
use flate2::write::{DeflateDecoder, GzDecoder, ZlibDecoder};
use servebench_core::{Failure, FailureKind, Progress};
use std::io::{self, Write};

/// Compressed bytes that are decoded at once: they become some 4 MiB at most, whatever a server sends.
const STEP: usize = 4096;

/// How the body of one response is encoded, and how far it has been decoded.
#[derive(Default)]
pub(crate) struct Coding {
    inflate: Option<Box<Inflate>>,
    broken: Option<Failure>,
}

impl Coding {
    /// How the exchange ended, now that its body is known to be whole or not.
    pub(crate) fn end(self, ended: Ended) -> Ended {
        if let Some(failure) = self.broken {
            return Ended::Broken(failure);
        }
        let is_short = |mut inflate: Box<Inflate>| !inflate.is_whole();
        if ended == Ended::Complete && self.inflate.is_some_and(is_short) {
            return Ended::Broken(Failure::new(
                FailureKind::Truncated,
                "truncated: the compressed body ends before it is complete",
            ));
        }
        ended
    }
}

/// Shows a visitor the decoded body.
pub(crate) struct Decoded<'a> {
    pub(crate) coding: &'a mut Coding,
    pub(crate) visit: &'a mut dyn Visit,
}

impl Visit for Decoded<'_> {
    fn head(&mut self, head: &Head) -> Progress {
        self.coding.inflate = head.encoding.as_deref().and_then(Inflate::of).map(Box::new);
        if self.coding.inflate.is_none() {
            return self.visit.head(head);
        }
        self.visit.head(&Head { encoding: None, ..head.clone() })
    }

    fn data(&mut self, bytes: &[u8]) -> Progress {
        let Some(inflate) = &mut self.coding.inflate else { return self.visit.data(bytes) };
        for step in bytes.chunks(STEP) {
            match inflate.take(step) {
                Ok(text) if text.is_empty() => {}
                Ok(text) => {
                    if self.visit.data(&text) == Progress::Done {
                        return Progress::Done;
                    }
                }
                Err(error) => {
                    let detail = format!("the compressed body is damaged: {error}");
                    self.coding.broken = Some(Failure::new(FailureKind::Protocol, detail));
                    return Progress::Done;
                }
            }
        }
        Progress::More
    }
}

/// Whether this `Content-Encoding` says that a body is none but itself.
pub(crate) fn is_plain(encoding: &str) -> bool {
    let encoding = encoding.trim();
    encoding.is_empty() || encoding.eq_ignore_ascii_case("identity")
}

/// Undoes one content coding.
pub(crate) enum Inflate {
    /// Nothing has come yet of what calls itself `deflate`, which is said of two formats.
    Undecided,
    Gzip(GzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Raw(DeflateDecoder<Vec<u8>>),
}

impl Inflate {
    /// The one for this `Content-Encoding`, if it is spoken.
    pub(crate) fn of(encoding: &str) -> Option<Self> {
        let encoding = encoding.trim();
        if encoding.eq_ignore_ascii_case("gzip") || encoding.eq_ignore_ascii_case("x-gzip") {
            return Some(Self::Gzip(GzDecoder::new(Vec::new())));
        }
        encoding.eq_ignore_ascii_case("deflate").then_some(Self::Undecided)
    }

    /// Takes the next bytes, which are not empty, and gives all that they decode to.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        if let Self::Undecided = self {
            // zlib's first byte names method 8 and a window of at most 7; in bare deflate that would
            // be a stored block with dirty padding.
            let zlib = bytes.first().is_some_and(|first| first & 0x0f == 8 && first >> 4 <= 7);
            *self = if zlib {
                Self::Zlib(ZlibDecoder::new(Vec::new()))
            } else {
                Self::Raw(DeflateDecoder::new(Vec::new()))
            };
        }
        match self {
            Self::Undecided => Ok(Vec::new()),
            Self::Gzip(decoder) => {
                write(decoder, bytes)?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Zlib(decoder) => {
                write(decoder, bytes)?;
                Ok(std::mem::take(decoder.get_mut()))
            }
            Self::Raw(decoder) => {
                write(decoder, bytes)?;
                Ok(std::mem::take(decoder.get_mut()))
            }
        }
    }

    /// Whether what was taken is a whole body, or nothing at all.
    pub(crate) fn is_whole(&mut self) -> bool {
        let done = match self {
            Self::Undecided => return true,
            Self::Gzip(decoder) => decoder.try_finish(),
            Self::Zlib(decoder) => decoder.try_finish(),
            Self::Raw(decoder) => decoder.try_finish(),
        };
        done.is_ok()
    }
}

/// Writes all bytes that belong to the compressed data; what follows its end is nobody's.
fn write(decoder: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match decoder.write(bytes) {
            Ok(0) => break,
            Ok(taken) => bytes = &bytes[taken..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // Without, what was decoded waits for the next bytes.
    decoder.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    fn encoded(encoding: &str, parts: &[&[u8]]) -> Vec<u8> {
        fn all<W: Write>(
            mut encoder: W,
            parts: &[&[u8]],
            finish: impl Fn(W) -> io::Result<Vec<u8>>,
        ) -> Vec<u8> {
            for part in parts {
                encoder.write_all(part).unwrap();
                encoder.flush().unwrap();
            }
            finish(encoder).unwrap()
        }
        let level = Compression::default();
        match encoding {
            "gzip" => all(GzEncoder::new(Vec::new(), level), parts, GzEncoder::finish),
            "zlib" => all(ZlibEncoder::new(Vec::new(), level), parts, ZlibEncoder::finish),
            _ => all(DeflateEncoder::new(Vec::new(), level), parts, DeflateEncoder::finish),
        }
    }

    #[test]
    fn each_part_is_there_as_soon_as_its_bytes_are() {
        let parts: [&[u8]; 2] = [b"data: one\n\n", b"data: two\n\n"];
        let whole = encoded("gzip", &parts);
        let first = encoded("gzip", &parts[..1]).len() - 10;
        let mut inflate = Inflate::of(" GZIP ").unwrap();
        assert_eq!(inflate.take(&whole[..first]).unwrap(), parts[0]);
        assert!(!inflate.is_whole());
        let mut inflate = Inflate::of("x-gzip").unwrap();
        assert_eq!(inflate.take(&whole).unwrap(), parts.concat());
        assert!(inflate.is_whole());
        assert_eq!(inflate.take(b"behind the end").unwrap(), b"", "is nobody's");
        assert!(Inflate::of("deflate").unwrap().is_whole(), "no body at all");
        assert!(Inflate::of("br").is_none() && Inflate::of("gzip, gzip").is_none());
    }

    #[test]
    fn a_step_of_a_bomb_is_bounded() {
        let bomb = encoded("gzip", &[&vec![0; 64 << 20]]);
        let mut inflate = Inflate::of("gzip").unwrap();
        let most = bomb.chunks(STEP).map(|step| inflate.take(step).unwrap().len()).max();
        assert!(most.unwrap() < 5 << 20, "{most:?}");
        assert!(inflate.is_whole());
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded_however_it_is_cut(
            parts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 1..6),
            step in 1..50usize,
        ) {
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            for (format, encoding) in [("gzip", "gzip"), ("zlib", "deflate"), ("raw", "deflate")] {
                let mut inflate = Inflate::of(encoding).unwrap();
                let mut text = Vec::new();
                for piece in encoded(format, &parts).chunks(step) {
                    text.extend(inflate.take(piece).unwrap());
                }
                prop_assert_eq!(&text, &parts.concat(), "{}", format);
                prop_assert!(inflate.is_whole());
            }
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            crate::fuzzing::coded_body(&bytes);
            let mut gzip = encoded("gzip", &[b"some text that is compressed"]);
            for (at, byte) in bytes.iter().enumerate().take(3) {
                let place = (at * 7 + usize::from(*byte)) % gzip.len();
                gzip[place] ^= byte;
            }
            crate::fuzzing::coded_body(&[&[0, 3], &gzip[..]].concat());
        }
    }
}
