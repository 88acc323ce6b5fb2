//! The token-bearing chunks of one reply, stored in a few bytes each.

use crate::Stamp;

/// One token-bearing piece of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// When its last byte was received: then exactly if `after` is the same, else no later.
    pub at: Stamp,
    /// Its last byte was not received before.
    pub after: Stamp,
    /// Tokens it carried, where the server's own counts tell; `None` where they do not.
    pub tokens: Option<u32>,
    /// The choice it belongs to (0 unless several were asked for).
    pub choice: u32,
}

impl Chunk {
    /// True when `at` is not a bound but the time itself.
    pub fn is_exact(&self) -> bool {
        self.after == self.at
    }
}

/// An append-only list of [`Chunk`]s, delta-encoded: about three bytes a chunk.
///
/// Stamps never decrease: a chunk that claims to be older than the one before it takes that
/// one's stamp. They are kept to [`RESOLUTION`](Self::RESOLUTION).
///
/// Bytes that are read together have one receive time, that of the newest. So of the chunks with one
/// stamp only the last is exact, and that only if nothing followed it
/// ([`followed`](Self::followed)); the others came at any time since the read before
/// ([`read_after`](Self::read_after)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunks {
    /// All chunks but the last.
    bytes: Vec<u8>,
    end: Place,
    /// What comes next tells whether the last one's stamp is a bound.
    last: Packed,
    first: u64,
    /// Nothing of what is being read came before; `None` where reads are not announced.
    after: Option<u64>,
    len: u32,
}

/// A chunk in units of the resolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Packed {
    at: u64,
    /// How long before `at` it may have come.
    slack: u64,
    /// Tokens plus one; 0 where they are not known.
    tokens: u64,
    choice: u32,
}

/// What the next chunk is encoded against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Place {
    at: u64,
    tokens: u64,
    choice: u32,
}

/// Set in a delta when the slack follows.
const SLACK: u64 = 1;
/// Set in a delta when tokens and choice follow: they differ from the chunk before.
const OTHER: u64 = 2;

impl Chunks {
    /// Stamps are cut to this many nanoseconds, so that a usual gap fits three bytes. What a system
    /// tells of the time of received bytes is not better than that.
    pub const RESOLUTION: u64 = 64;

    /// What is pushed from now on was read at once, and nothing of it came before `after`.
    pub fn read_after(&mut self, after: Stamp) {
        self.after = Some(after.0 / Self::RESOLUTION);
    }

    /// Appends one chunk.
    pub fn push(&mut self, at: Stamp, tokens: Option<u32>, choice: u32) {
        self.followed(at);
        let at = (at.0 / Self::RESOLUTION).max(self.last.at);
        if self.len == 0 {
            self.first = at;
        } else {
            write(&mut self.bytes, &mut self.end, self.last);
        }
        let tokens = tokens.map_or(0, |n| u64::from(n) + 1);
        self.last = Packed { at, slack: 0, tokens, choice };
        self.len += 1;
    }

    /// Something that carries no tokens was received at `at`, behind the last chunk.
    pub fn followed(&mut self, at: Stamp) {
        if let Some(after) = self.after
            && self.len > 0
            && at.0 / Self::RESOLUTION <= self.last.at
        {
            self.last.slack = self.last.at.saturating_sub(after);
        }
    }

    /// Gives memory back that no further chunk will need.
    pub fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
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
        (self.len > 0).then_some(stamp(self.first))
    }

    /// Stamp of the last chunk.
    pub fn last(&self) -> Option<Stamp> {
        (self.len > 0).then_some(stamp(self.last.at))
    }

    /// The chunks in the order in which they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = Chunk> + '_ {
        let (mut rest, mut place) = (self.bytes.as_slice(), Place::default());
        let encoded = std::iter::from_fn(move || read(&mut rest, &mut place));
        encoded.chain((self.len > 0).then_some(self.last)).map(Packed::unpack)
    }
}

impl Packed {
    fn unpack(self) -> Chunk {
        Chunk {
            at: stamp(self.at),
            after: stamp(self.at.saturating_sub(self.slack)),
            tokens: self.tokens.checked_sub(1).map(|n| n as u32),
            choice: self.choice,
        }
    }
}

fn stamp(ticks: u64) -> Stamp {
    Stamp(ticks * Chunks::RESOLUTION)
}

fn write(out: &mut Vec<u8>, place: &mut Place, chunk: Packed) {
    let Packed { at, slack, tokens, choice } = chunk;
    let other = (tokens, choice) != (place.tokens, place.choice);
    let flags = if slack > 0 { SLACK } else { 0 } | if other { OTHER } else { 0 };
    // The stamp was divided by the resolution: two bits are free.
    write_varint(out, (at - place.at) << 2 | flags);
    if slack > 0 {
        write_varint(out, slack);
    }
    if other {
        write_varint(out, tokens);
        write_varint(out, u64::from(choice));
    }
    *place = Place { at, tokens, choice };
}

fn read(rest: &mut &[u8], place: &mut Place) -> Option<Packed> {
    let delta = read_varint(rest)?;
    place.at += delta >> 2;
    let slack = if delta & SLACK == 0 { 0 } else { read_varint(rest)? };
    if delta & OTHER != 0 {
        place.tokens = read_varint(rest)?;
        place.choice = read_varint(rest)? as u32;
    }
    let Place { at, tokens, choice } = *place;
    Some(Packed { at, slack, tokens, choice })
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
