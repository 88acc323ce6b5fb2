//! Numbers as bits in a row, the lowest first.

/// Appends bits to bytes. Those that fill no byte yet wait.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BitWriter {
    waiting: u64,
    /// How many wait: fewer than 32.
    count: u32,
}

impl BitWriter {
    /// The most that can be put at once.
    pub(super) const MOST: u32 = 32;

    /// Appends the lowest `count` bits of `value`, which has no others.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, value: u64, count: u32) {
        self.waiting |= value << self.count;
        self.count += count;
        if self.count >= 32 {
            out.extend_from_slice(&(self.waiting as u32).to_le_bytes());
            self.waiting >>= 32;
            self.count -= 32;
        }
    }

    /// The bits that wait.
    pub(super) fn tail(&self) -> [u8; 8] {
        self.waiting.to_le_bytes()
    }

    /// Appends the bits that wait.
    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.tail()[..self.count.div_ceil(8) as usize]);
        *self = Self::default();
    }
}

/// Reads bits back: those of the bytes, then those that waited, then zeros.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitReader<'a> {
    bytes: &'a [u8],
    tail: [u8; 8],
    /// Place of the next bit.
    at: usize,
}

impl<'a> BitReader<'a> {
    pub(super) fn new(bytes: &'a [u8], tail: [u8; 8]) -> Self {
        Self { bytes, tail, at: 0 }
    }

    /// The next bits, at least 57 of them.
    pub(super) fn peek(&self) -> u64 {
        let (byte, shift) = (self.at / 8, self.at % 8);
        let word = match self.bytes.get(byte..).and_then(<[u8]>::first_chunk) {
            Some(word) => *word,
            None => std::array::from_fn(|index| {
                let index = byte + index;
                let tail = || self.tail.get(index - self.bytes.len());
                self.bytes.get(index).or_else(tail).copied().unwrap_or(0)
            }),
        };
        u64::from_le_bytes(word) >> shift
    }

    /// Bits read so far.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn skip(&mut self, count: u32) {
        self.at += count as usize;
    }

    /// The next `count` bits, at most [`BitWriter::MOST`].
    pub(super) fn get(&mut self, count: u32) -> u64 {
        let value = self.peek() & ((1 << count) - 1);
        self.skip(count);
        value
    }
}
