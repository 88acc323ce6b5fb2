//! Thrift's compact protocol, as far as to see that a structure comes to its end.
//!
//! The Parquet reader skips what it does not know, and counts to two thousand million for a list of as many
//! values that take no room (60.1). A file of a thousand bytes could keep it busy for an hour.

use std::io::{self, ErrorKind, Read};

/// Most values without room that a list may have. Nothing in a Parquet file has any.
const MOST: u64 = 1 << 16;
/// How deep structures may be in each other: the Parquet reader's own limit.
const DEPTH: u32 = 64;

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Reads past the structure that begins here.
///
/// # Errors
///
/// When there is none, it does not end, or a list in it is longer than what comes.
pub(super) fn check(from: &mut impl Read) -> io::Result<()> {
    pass(from, STRUCT, DEPTH)
}

fn pass(from: &mut impl Read, kind: u8, depth: u32) -> io::Result<()> {
    let depth = depth.checked_sub(1).ok_or(ErrorKind::InvalidData)?;
    match kind {
        TRUE | FALSE => Ok(()),
        BYTE => byte(from).map(drop),
        I16 | I32 | I64 => number(from).map(drop),
        DOUBLE => skip(from, 8),
        UUID => skip(from, 16),
        BINARY => {
            let length = number(from)?;
            skip(from, length)
        }
        LIST | SET => {
            let head = byte(from)?;
            let count = match head >> 4 {
                15 => number(from)?,
                count => count.into(),
            };
            several(from, count, &[head & 15], depth)
        }
        MAP => {
            let count = number(from)?;
            if count == 0 {
                return Ok(());
            }
            let kinds = byte(from)?;
            several(from, count, &[kinds >> 4, kinds & 15], depth)
        }
        STRUCT => loop {
            let head = byte(from)?;
            match head & 15 {
                STOP => return Ok(()),
                kind => {
                    if head >> 4 == 0 {
                        number(from)?;
                    }
                    pass(from, kind, depth)?;
                }
            }
        },
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// `count` times a value of each of these kinds.
fn several(from: &mut impl Read, count: u64, kinds: &[u8], depth: u32) -> io::Result<()> {
    let has_room = kinds.iter().any(|kind| !matches!(*kind, TRUE | FALSE));
    if count > MOST && !has_room {
        return Err(ErrorKind::InvalidData.into());
    }
    for _ in 0..count {
        for kind in kinds {
            pass(from, *kind, depth)?;
        }
    }
    Ok(())
}

fn byte(from: &mut impl Read) -> io::Result<u8> {
    let mut room = [0];
    from.read_exact(&mut room)?;
    Ok(room[0])
}

/// An unsigned number; of a signed one, how it is coded.
fn number(from: &mut impl Read) -> io::Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let next = byte(from)?;
        number |= u64::from(next & 0x7f) << shift;
        if next < 0x80 {
            return Ok(number);
        }
    }
    Err(ErrorKind::InvalidData.into())
}

fn skip(from: &mut impl Read, length: u64) -> io::Result<()> {
    let skipped = io::copy(&mut from.by_ref().take(length), &mut io::sink())?;
    if skipped == length { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_not_longer_than_what_comes() {
        let ends = |bytes: &[u8]| check(&mut &*bytes).map_err(|error| error.kind());
        // A field of each kind, and a list and a map of two numbers.
        let whole = [
            0x11, 0x12, 0x13, 9, 0x15, 0x80, 1, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x18, 2, b'a', b'b',
            0x19, 0x25, 1, 2, 0x1b, 1, 0x55, 3, 4, 0x0c, 0x40, 0x11, 0, 0,
        ];
        assert_eq!(ends(&whole), Ok(()));
        for length in 0..whole.len() {
            assert_eq!(ends(&whole[..length]), Err(ErrorKind::UnexpectedEof), "{length}");
        }
        let long = [0xff, 0xff, 0xff, 0xff, 7];
        let list = |head: u8| [&[0x19, head][..], &long, &[0]].concat();
        assert_eq!(ends(&list(0xf1)), Err(ErrorKind::InvalidData), "of truth values");
        assert_eq!(ends(&list(0xf7)), Err(ErrorKind::UnexpectedEof), "of numbers");
        assert_eq!(ends(&[&[0x1b][..], &long, &[0x11, 0]].concat()), Err(ErrorKind::InvalidData));
        assert_eq!(ends(&[0x1c; 100]), Err(ErrorKind::InvalidData), "too deep");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            drop(check(&mut &*bytes));
        }
    }
}
