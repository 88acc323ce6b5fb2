//! The chunked transfer coding, taken apart in place.

use super::Malformed;

/// Most bytes of chunk extensions in a row, and of trailers.
const SURPLUS_LIMIT: usize = 16 * 1024;

/// Where in a chunked body the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunked {
    /// In a chunk's size; whether a digit has come.
    Size {
        value: u64,
        digits: bool,
    },
    /// Behind the digits of the size.
    Padding {
        value: u64,
    },
    /// In an extension, which means nothing to us.
    Extension {
        value: u64,
        seen: usize,
    },
    /// At the line feed behind a size.
    SizeEnd {
        value: u64,
    },
    /// In a chunk's data.
    Data {
        left: u64,
    },
    /// Behind a chunk's data: at its CR, at its LF.
    DataCr,
    DataLf,
    /// Behind the last chunk, at the start of a line, in one, or at its LF.
    Trailer {
        seen: usize,
    },
    TrailerLine {
        seen: usize,
    },
    TrailerLf {
        seen: usize,
    },
    /// At the LF that ends it all.
    EndLf,
    /// Over.
    End,
}

impl Chunked {
    pub(super) const START: Self = Self::Size { value: 0, digits: false };

    /// Takes the beginning of `bytes`, which are not empty: at least one byte, at most to the end of
    /// a chunk. Returns how many, and what of them is data (always at their start).
    pub(super) fn step(&mut self, bytes: &[u8]) -> Result<(usize, usize), Malformed> {
        if let Self::Data { left } = *self {
            let count = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
            let left = left - count as u64;
            *self = if left == 0 { Self::DataCr } else { Self::Data { left } };
            return Ok((count, count));
        }
        for (index, byte) in bytes.iter().enumerate() {
            *self = self.next(*byte)?;
            if matches!(self, Self::Data { .. } | Self::End) {
                return Ok((index + 1, 0));
            }
        }
        Ok((bytes.len(), 0))
    }

    /// The state behind a byte that is not data.
    fn next(self, byte: u8) -> Result<Self, Malformed> {
        let surplus = |seen: usize| {
            if seen < SURPLUS_LIMIT {
                Ok(seen + 1)
            } else {
                Err(Malformed("too much beside the data of a chunked body"))
            }
        };
        Ok(match (self, byte) {
            (Self::Size { value, .. }, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = (byte as char).to_digit(16).unwrap_or(0);
                let value = value.checked_mul(16).and_then(|value| value.checked_add(digit.into()));
                let value = value.ok_or(Malformed("a chunk size is too large"))?;
                Self::Size { value, digits: true }
            }
            (Self::Size { value, digits: true } | Self::Padding { value }, b'\r') => {
                Self::SizeEnd { value }
            }
            (Self::Size { value, digits: true } | Self::Padding { value }, b' ' | b'\t') => {
                Self::Padding { value }
            }
            (Self::Size { value, digits: true } | Self::Padding { value }, b';') => {
                Self::Extension { value, seen: 0 }
            }
            (Self::Extension { value, .. }, b'\r') => Self::SizeEnd { value },
            (Self::Extension { .. }, b'\n') => {
                return Err(Malformed("a chunk extension holds a line feed"));
            }
            (Self::Extension { value, seen }, _) => Self::Extension { value, seen: surplus(seen)? },
            (Self::SizeEnd { value: 0 }, b'\n') => Self::Trailer { seen: 0 },
            (Self::SizeEnd { value }, b'\n') => Self::Data { left: value },
            (Self::DataCr, b'\r') => Self::DataLf,
            (Self::DataLf, b'\n') => Self::START,
            (Self::Trailer { .. }, b'\r') => Self::EndLf,
            (Self::TrailerLine { seen }, b'\r') => Self::TrailerLf { seen },
            (Self::Trailer { seen } | Self::TrailerLine { seen }, _) => {
                Self::TrailerLine { seen: surplus(seen)? }
            }
            (Self::TrailerLf { seen }, b'\n') => Self::Trailer { seen },
            (Self::EndLf, b'\n') => Self::End,
            (Self::Size { .. } | Self::Padding { .. } | Self::SizeEnd { .. }, _) => {
                return Err(Malformed(
                    "a chunk size is no hexadecimal number on a line of its own",
                ));
            }
            (Self::DataCr | Self::DataLf, _) => {
                return Err(Malformed("a chunk is longer than its size says"));
            }
            (Self::TrailerLf { .. } | Self::EndLf, _) => {
                return Err(Malformed("a line of the trailer does not end with CR LF"));
            }
            (Self::Data { .. } | Self::End, _) => self,
        })
    }
}
