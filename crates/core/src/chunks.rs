//! The token-bearing chunks of one reply, stored in a few bytes each.

mod bits;
mod coding;

use crate::Stamp;
use coding::{Packed, Reader, Writer};
use std::borrow::Cow;
use std::hint::black_box;

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

/// An append-only list of [`Chunk`]s, encoded: about two bytes a chunk, where gaps vary by half a
/// millisecond, and a fraction of one where chunks come together.
///
/// Stamps never decrease: a chunk that claims to be older than the one before it takes that
/// one's stamp. They are kept to [`RESOLUTION`](Self::RESOLUTION).
///
/// Bytes that are read together have one receive time, that of the newest. So of the chunks with one
/// stamp only the last is exact, and that only if nothing followed it
/// ([`followed`](Self::followed)); the others came at any time since the read before
/// ([`read_after`](Self::read_after)).
#[derive(Clone, Debug, Default)]
pub struct Chunks {
    /// Of a list that does not grow any more.
    bytes: Box<[u8]>,
    first: u64,
    last: u64,
    len: u32,
    /// What only a list that still grows has.
    open: Option<Box<Open>>,
}

/// The growing end of a list.
#[derive(Clone, Debug, Default)]
struct Open {
    writer: Writer,
    bytes: Vec<u8>,
    /// The last chunk, not encoded yet: what comes next tells whether its stamp is a bound.
    last: Option<Packed>,
    /// Nothing of what is being read came before; `None` where reads are not announced.
    after: Option<u64>,
}

impl Open {
    /// Something was received at `at`: if together with the last chunk, that one's stamp is a bound.
    fn note(&mut self, at: u64) {
        if let (Some(after), Some(last)) = (self.after, &mut self.last)
            && at <= last.at
        {
            last.slack = last.at.saturating_sub(after);
        }
    }
}

/// A list of [`Chunks`] as it can be kept elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedChunks<'a> {
    /// Number of chunks.
    pub count: u32,
    /// Stamp of the first one, in units of [`Chunks::RESOLUTION`].
    pub first: u64,
    /// The chunks, in the coding of this version of the crate.
    pub bytes: Cow<'a, [u8]>,
}

impl Chunks {
    /// The list as it can be kept elsewhere.
    pub fn pack(&self) -> PackedChunks<'_> {
        let bytes = if self.open.is_none() {
            Cow::Borrowed(&*self.bytes)
        } else {
            let mut closed = self.clone();
            closed.shrink();
            Cow::Owned(closed.bytes.into_vec())
        };
        PackedChunks { count: self.len, first: self.first, bytes }
    }

    /// The list that was packed. `None` for what no list packs into: chunks that are not there or
    /// out of order, bytes that are left over, stamps and counts without end.
    pub fn unpack(packed: &PackedChunks<'_>) -> Option<Self> {
        let PackedChunks { count, first, bytes } = packed;
        // A chunk takes a bit at least: no count makes this long.
        if *count as usize > bytes.len() * 8 {
            return None;
        }
        let mut reader = Reader::new(bytes, [0; 8]);
        let mut last = *first;
        for index in 0..*count {
            let chunk = reader.read();
            let at = first.checked_add(chunk.at)?;
            let fits = at >= last && at <= u64::MAX / Self::RESOLUTION;
            let begins = index > 0 || chunk.at == 0;
            if !fits || !begins || chunk.tokens > u64::from(u32::MAX) + 1 {
                return None;
            }
            last = at;
        }
        let whole = reader.bits().div_ceil(8) == bytes.len();
        let empty = *count > 0 || *first == 0;
        (whole && empty).then(|| Self {
            bytes: bytes.as_ref().into(),
            first: *first,
            last,
            len: *count,
            open: None,
        })
    }

    /// Stamps are cut to this many nanoseconds. What a system tells of the time of received bytes
    /// is not better than that.
    pub const RESOLUTION: u64 = 64;

    /// Looks at the memory that the next chunk will need, so that it need not be waited for then.
    pub fn near(&self) {
        if let Some(open) = &self.open {
            black_box((open.last, open.after, open.bytes.last()));
        }
    }

    /// What is pushed from now on was read at once, and nothing of it came before `after`.
    pub fn read_after(&mut self, after: Stamp) {
        self.open().after = Some(after.0 / Self::RESOLUTION);
    }

    /// Appends one chunk.
    pub fn push(&mut self, at: Stamp, tokens: Option<u32>, choice: u32) {
        let at = at.0 / Self::RESOLUTION;
        let tokens = tokens.map_or(0, |n| u64::from(n) + 1);
        self.open().note(at);
        self.append(Packed { at: at.max(self.last), slack: 0, tokens, choice });
    }

    /// Something that carries no tokens was received at `at`, behind the last chunk.
    pub fn followed(&mut self, at: Stamp) {
        self.open().note(at.0 / Self::RESOLUTION);
    }

    // In line, so that the chunk stays in registers: read from where it was just written, it would wait for all
    // that was written before.
    #[inline]
    fn append(&mut self, chunk: Packed) {
        if self.len == 0 {
            self.first = chunk.at;
        }
        self.last = chunk.at;
        self.len += 1;
        let first = self.first;
        let open = self.open.get_or_insert_default();
        if let Some(before) = open.last.replace(chunk) {
            open.writer.write(&mut open.bytes, before.since(first));
        }
    }

    /// The growing end; made anew if the list was closed.
    fn open(&mut self) -> &mut Open {
        if self.open.is_none() && self.len > 0 {
            let mut again = Self::default();
            self.packed().for_each(|chunk| again.append(chunk));
            *self = again;
        }
        self.open.get_or_insert_default()
    }

    /// Gives memory back that no further chunk will need. One more can be pushed, at some cost.
    pub fn shrink(&mut self) {
        let Some(mut open) = self.open.take() else { return };
        if let Some(last) = open.last {
            open.writer.write(&mut open.bytes, last.since(self.first));
        }
        open.writer.flush(&mut open.bytes);
        // Copied, since some allocators leave a block that became smaller where it is.
        self.bytes = open.bytes.as_slice().into();
    }

    /// Memory that the list takes besides itself, in bytes.
    pub fn size(&self) -> usize {
        let open = self.open.as_ref().map_or(0, |open| size_of::<Open>() + open.bytes.capacity());
        self.bytes.len() + open
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
        (self.len > 0).then_some(stamp(self.last))
    }

    /// The chunks in the order in which they were pushed.
    pub fn iter(&self) -> impl Iterator<Item = Chunk> + Clone + '_ {
        self.packed().map(Packed::unpack)
    }

    fn packed(&self) -> impl Iterator<Item = Packed> + Clone + '_ {
        let open = self.open.as_deref();
        let tail = open.map_or([0; 8], |open| open.writer.tail());
        let last = open.and_then(|open| open.last);
        let mut reader = Reader::new(open.map_or(&self.bytes, |open| &open.bytes), tail);
        let first = self.first;
        let encoded = self.len - u32::from(last.is_some());
        (0..encoded).map(move |_| reader.read().until(first)).chain(last)
    }
}

impl PartialEq for Chunks {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.packed().eq(other.packed())
    }
}

impl Eq for Chunks {}

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
