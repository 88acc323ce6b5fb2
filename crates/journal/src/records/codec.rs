//! Numbers, bytes and optional fields, written one behind the other.

/// What fields are there: one bit each, in the order in which they are written.
const MASK: usize = 4;

/// Writes the fields of one item.
pub(super) struct Encoder<'a> {
    out: &'a mut Vec<u8>,
    mask: usize,
    bit: usize,
}

impl<'a> Encoder<'a> {
    /// Begins an item of at most 32 optional fields.
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let mask = out.len();
        out.extend_from_slice(&[0; MASK]);
        Self { out, mask, bit: 0 }
    }

    /// Writes a field if it is there.
    pub(super) fn option<T>(&mut self, value: Option<T>, put: impl FnOnce(&mut Self, T)) {
        debug_assert!(self.bit < MASK * 8);
        if let Some(value) = value {
            self.out[self.mask + self.bit / 8] |= 1 << (self.bit % 8);
            put(self, value);
        }
        self.bit += 1;
    }

    /// A number without sign: seven bits a byte, the lowest first, the highest bit telling that more follow.
    pub(super) fn number(&mut self, value: impl Into<u64>) {
        number(self.out, value.into());
    }

    /// A number, as the difference from `base`: near ones are short.
    pub(super) fn near(&mut self, value: u64, base: u64) {
        let off = value.wrapping_sub(base).cast_signed();
        self.number(((off << 1) ^ (off >> 63)).cast_unsigned());
    }

    /// Bytes with their number before them.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.raw(bytes);
    }

    /// Bytes whose number is known.
    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// An item inside this one, with fields of its own.
    pub(super) fn item(&mut self, write: impl FnOnce(&mut Encoder<'_>)) {
        write(&mut Encoder::new(self.out));
    }
}

/// Appends a number as [`Encoder::number`] does.
pub(super) fn number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads the fields of one item. Each method gives `None` for what an [`Encoder`] did not write.
pub(super) struct Decoder<'a> {
    bytes: &'a [u8],
    mask: u32,
    bit: u32,
}

impl<'a> Decoder<'a> {
    /// Begins an item at the start of `bytes`.
    pub(super) fn new(bytes: &'a [u8]) -> Option<Self> {
        let mut this = Self::plain(bytes);
        this.begin()?;
        Some(this)
    }

    /// Reads bytes that are no item.
    pub(super) fn plain(bytes: &'a [u8]) -> Self {
        Self { bytes, mask: 0, bit: 0 }
    }

    fn begin(&mut self) -> Option<()> {
        (self.mask, self.bit) = (u32::from_le_bytes(self.array()?), 0);
        Some(())
    }

    /// The bytes that were not read.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[expect(clippy::option_option, reason = "not understood, or not there")]
    pub(super) fn option<T>(
        &mut self,
        take: impl FnOnce(&mut Self) -> Option<T>,
    ) -> Option<Option<T>> {
        let there = self.mask.checked_shr(self.bit).unwrap_or(0) & 1 == 1;
        self.bit += 1;
        if there { take(self).map(Some) } else { Some(None) }
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                return None;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// A number of a smaller type.
    pub(super) fn narrow<T: TryFrom<u64>>(&mut self) -> Option<T> {
        T::try_from(self.number()?).ok()
    }

    pub(super) fn near(&mut self, base: u64) -> Option<u64> {
        let folded = self.number()?;
        let off = (folded >> 1).cast_signed() ^ -(folded & 1).cast_signed();
        Some(base.wrapping_add_signed(off))
    }

    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.narrow()?;
        let (bytes, rest) = self.bytes.split_at_checked(count)?;
        self.bytes = rest;
        Some(bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some(*bytes)
    }

    /// An item inside this one.
    pub(super) fn item<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let outer = (self.mask, self.bit);
        self.begin()?;
        let value = read(self)?;
        (self.mask, self.bit) = outer;
        Some(value)
    }
}
