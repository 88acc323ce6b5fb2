//! The token-bearing chunks of one reply, stored in a few bytes each.

use crate::Stamp;

/// One token-bearing piece of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When its last byte was received.
    pub at: Stamp,
    /// Tokens it carried, where the server's own counts tell; `None` where they do not.
    pub tokens: Option<u32>,
    /// The choice it belongs to (0 unless several were asked for).
    pub choice: u32,
}

/// An append-only list of [`Chunk`]s, delta-encoded: about five bytes a chunk.
///
/// Stamps never decrease: a chunk that claims to be older than the one before it takes that
/// one's stamp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    bytes: Vec<u8>,
    first: Stamp,
    last: Stamp,
    len: u32,
}

impl Chunks {
    /// Appends one chunk.
    pub fn push(&mut self, at: Stamp, tokens: Option<u32>, choice: u32) {
        let at = at.max(self.last);
        if self.len == 0 {
            self.first = at;
        }
        write_varint(&mut self.bytes, at.0 - self.last.0);
        let tokens = tokens.map_or(0, |n| u64::from(n) + 1);
        write_varint(&mut self.bytes, tokens << 1 | u64::from(choice != 0));
        if choice != 0 {
            write_varint(&mut self.bytes, u64::from(choice));
        }
        self.last = at;
        self.len += 1;
    }

    /// Number of chunks.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// True when nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Stamp of the first chunk.
    pub fn first(&self) -> Option<Stamp> {
        (self.len > 0).then_some(self.first)
    }

    /// Stamp of the last chunk.
    pub fn last(&self) -> Option<Stamp> {
        (self.len > 0).then_some(self.last)
    }

    /// The chunks in the order in which they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = Chunk> + '_ {
        let mut rest = self.bytes.as_slice();
        let mut at = Stamp(0);
        std::iter::from_fn(move || {
            let delta = read_varint(&mut rest)?;
            let packed = read_varint(&mut rest)?;
            let choice = if packed & 1 == 1 { read_varint(&mut rest)? as u32 } else { 0 };
            at = Stamp(at.0 + delta);
            let tokens = (packed >> 1).checked_sub(1).map(|n| n as u32);
            Some(Chunk { at, tokens, choice })
        })
    }
}

fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, tail) = rest.split_first()?;
        *rest = tail;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
