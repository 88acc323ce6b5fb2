//! How chunks become bits: what differs from what was to be expected.
//!
//! Tokens come at a beat, so the gap before each is near the mean of those before it. What it is off
//! by is written in Rice's code: its lower bits as they are, as many as its usual size has, and how
//! often it exceeds these as a row of ones. That is within a bit or two of the least possible.

use super::bits::{BitReader, BitWriter};

/// A chunk in units of the resolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) at: u64,
    /// How long before `at` it may have come.
    pub(super) slack: u64,
    /// Tokens plus one; 0 where they are not known.
    pub(super) tokens: u64,
    pub(super) choice: u32,
}

impl Packed {
    /// With its stamp counted from `first`.
    pub(super) fn since(self, first: u64) -> Self {
        Self { at: self.at - first, ..self }
    }

    /// The inverse of [`since`](Self::since).
    pub(super) fn until(self, first: u64) -> Self {
        Self { at: self.at + first, ..self }
    }
}

/// What writer and reader expect of the next chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Model {
    before: Packed,
    gap: i64,
    /// Sixteen times the mean of what gaps were off by, as it is written.
    spread: u64,
    /// Chunks so far, as far as it matters.
    seen: u32,
}

/// Chunks before the means move slowly.
const SOON: u32 = 4;
/// So many ones say that flags come first: something but the stamp differs from the chunk before, or
/// the stamp is a bound.
const FLAGGED: u32 = 8;
/// So many ones say that a number follows in full.
const MANY: u32 = 16;
/// Bits for the length of such a number.
const LENGTH: u32 = 7;

const PLAIN: u64 = 0;
const SLACK: u64 = 1;
const SAME_SLACK: u64 = 2;
const TOKENS: u64 = 4;
const CHOICE: u64 = 8;
const FLAGS: u32 = 4;

impl Model {
    /// How many lower bits of a difference are written as they are.
    fn low_bits(&self) -> u32 {
        (self.spread >> 4 | 1).ilog2().min(BitWriter::MOST)
    }

    fn learn(&mut self, chunk: Packed, off: i64) {
        let size = folded(off).min(1 << 56);
        let quick = self.seen < SOON;
        // A stall is not what to expect next.
        let most = 4 * (self.spread >> 4) + 64;
        let half = (most / 2).cast_signed();
        let (off, size) =
            if quick { (off, size) } else { (off.clamp(-half, half), size.min(most)) };
        self.gap = self.gap.wrapping_add(off >> self.seen.min(3));
        self.spread = self.spread - (self.spread >> self.seen) + (size << 4 >> self.seen);
        self.seen = (self.seen + 1).min(SOON);
        self.before = chunk;
    }
}

/// Small numbers of either sign as small ones without: 0, −1, 1, −2, …
fn folded(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn unfolded(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Encodes chunk after chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Writer {
    bits: BitWriter,
    model: Model,
}

impl Writer {
    /// The bits that fill no byte yet.
    pub(super) fn tail(&self) -> [u8; 8] {
        self.bits.tail()
    }

    pub(super) fn flush(&mut self, out: &mut Vec<u8>) {
        self.bits.flush(out);
    }

    /// Appends a chunk, which is not older than the one before it.
    pub(super) fn write(&mut self, out: &mut Vec<u8>, chunk: Packed) {
        let before = self.model.before;
        let mut flags = PLAIN;
        if chunk.slack > 0 {
            flags |= if chunk.slack == before.slack { SLACK | SAME_SLACK } else { SLACK };
        }
        flags |= if chunk.tokens == before.tokens { PLAIN } else { TOKENS };
        flags |= if chunk.choice == before.choice { PLAIN } else { CHOICE };
        if flags != PLAIN {
            self.write_ones(out, FLAGGED);
            self.bits.put(out, flags, FLAGS);
        }
        let off = (chunk.at - before.at).cast_signed() - self.model.gap;
        self.write_off(out, folded(off));
        if flags & (SLACK | SAME_SLACK) == SLACK {
            self.write_full(out, chunk.slack);
        }
        if flags & TOKENS != 0 {
            self.write_full(out, chunk.tokens);
        }
        if flags & CHOICE != 0 {
            self.write_full(out, u64::from(chunk.choice));
        }
        self.model.learn(chunk, off);
    }

    fn write_off(&mut self, out: &mut Vec<u8>, off: u64) {
        let low = self.model.low_bits();
        let high = off >> low;
        let ones = high + u64::from(high >= u64::from(FLAGGED));
        if ones < u64::from(MANY) {
            self.write_ones(out, ones as u32);
            self.bits.put(out, off & ((1 << low) - 1), low);
        } else {
            self.write_ones(out, MANY);
            self.write_full(out, off);
        }
    }

    /// Appends so many ones and, behind fewer than can be, a zero.
    fn write_ones(&mut self, out: &mut Vec<u8>, ones: u32) {
        self.bits.put(out, (1 << ones) - 1, (ones + 1).min(MANY));
    }

    fn write_full(&mut self, out: &mut Vec<u8>, value: u64) {
        let length = u64::BITS - value.leading_zeros();
        self.bits.put(out, u64::from(length), LENGTH);
        let low = length.min(BitWriter::MOST);
        self.bits.put(out, value & ((1 << low) - 1), low);
        self.bits.put(out, value.checked_shr(low).unwrap_or(0), length - low);
    }
}

/// Decodes what a [`Writer`] wrote, with the bits that still wait in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    bits: BitReader<'a>,
    model: Model,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8], tail: [u8; 8]) -> Self {
        Self { bits: BitReader::new(bytes, tail), model: Model::default() }
    }

    /// Bits read so far.
    pub(super) fn bits(&self) -> usize {
        self.bits.at()
    }

    /// The next chunk. There must be one; of bits that no writer wrote comes any chunk.
    pub(super) fn read(&mut self) -> Packed {
        let before = self.model.before;
        let (mut ones, mut flags) = (self.read_ones(), PLAIN);
        if ones == FLAGGED {
            flags = self.bits.get(FLAGS);
            ones = self.read_ones();
        }
        let off = unfolded(self.read_off(ones));
        let at = before.at.wrapping_add_signed(self.model.gap.wrapping_add(off));
        let slack = match flags & (SLACK | SAME_SLACK) {
            SLACK => self.read_full(),
            PLAIN => 0,
            _ => before.slack,
        };
        let tokens = if flags & TOKENS == 0 { before.tokens } else { self.read_full() };
        let choice = if flags & CHOICE == 0 { before.choice } else { self.read_full() as u32 };
        let chunk = Packed { at, slack, tokens, choice };
        self.model.learn(chunk, off);
        chunk
    }

    fn read_off(&mut self, ones: u32) -> u64 {
        if ones == MANY {
            return self.read_full();
        }
        let low = self.model.low_bits();
        let high = ones - u32::from(ones > FLAGGED);
        u64::from(high) << low | self.bits.get(low)
    }

    fn read_ones(&mut self) -> u32 {
        let ones = self.bits.peek().trailing_ones().min(MANY);
        self.bits.skip((ones + 1).min(MANY));
        ones
    }

    fn read_full(&mut self) -> u64 {
        let length = (self.bits.get(LENGTH) as u32).min(u64::BITS);
        let low = self.bits.get(length.min(BitWriter::MOST));
        let high = self.bits.get(length.saturating_sub(BitWriter::MOST));
        low | high << BitWriter::MOST
    }
}
