//! Numbers, times and texts as bytes.

use crate::Malformed;
use servebench_core::Stamp;
use std::time::Duration;

/// What is written to the end of.
pub(crate) trait Put {
    /// A number, seven bits a byte, the lowest first.
    fn number(&mut self, value: u64);

    /// A number that may be below zero, near zero for the most part.
    fn signed(&mut self, value: i64) {
        self.number(((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    /// A stamp, as its distance from another.
    fn stamp(&mut self, at: Stamp, near: Stamp) {
        self.signed(at.0.wrapping_sub(near.0).cast_signed());
    }

    /// A time that went by. More than 584 years are taken for that.
    fn duration(&mut self, time: Duration) {
        self.number(Stamp::from(time).0);
    }

    /// Bytes behind their number.
    fn bytes(&mut self, bytes: &[u8]);
}

impl Put for Vec<u8> {
    fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }
}

/// What is left to read of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        let (&first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(first)
    }

    pub(crate) fn number(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(Malformed);
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    /// A number of 32 bits.
    pub(crate) fn small(&mut self) -> Result<u32, Malformed> {
        u32::try_from(self.number()?).map_err(|_| Malformed)
    }

    pub(crate) fn signed(&mut self) -> Result<i64, Malformed> {
        let value = self.number()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    pub(crate) fn stamp(&mut self, near: Stamp) -> Result<Stamp, Malformed> {
        Ok(Stamp(near.0.wrapping_add(self.signed()?.cast_unsigned())))
    }

    pub(crate) fn duration(&mut self) -> Result<Duration, Malformed> {
        self.number().map(Duration::from_nanos)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.number()?).map_err(|_| Malformed)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(bytes)
    }

    /// Text, with a replacement for what is none.
    pub(crate) fn text(&mut self) -> Result<String, Malformed> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_put_is_read(number: u64, signed: i64, near: u64, bytes: Vec<u8>) {
            let mut put = Vec::new();
            put.number(number);
            put.signed(signed);
            put.stamp(Stamp(number), Stamp(near));
            put.bytes(&bytes);
            let mut rest = Rest(&put);
            prop_assert_eq!(rest.number(), Ok(number));
            prop_assert_eq!(rest.signed(), Ok(signed));
            prop_assert_eq!(rest.stamp(Stamp(near)), Ok(Stamp(number)));
            prop_assert_eq!(rest.bytes(), Ok(&bytes[..]));
            prop_assert!(rest.is_empty());
        }
    }

    #[test]
    fn small_numbers_are_small() {
        for (value, want) in [(0, 1), (-64, 1), (63, 1), (64, 2), (i64::MIN, 10)] {
            let mut put = Vec::new();
            put.signed(value);
            assert_eq!(put.len(), want, "{value}");
        }
    }

    #[test]
    fn what_is_too_large_or_cut_is_malformed() {
        let endless = [0xff; 11];
        for bytes in [&b""[..], b"\x80", &endless, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"] {
            assert_eq!(Rest(bytes).number(), Err(Malformed), "{bytes:?}");
        }
        assert_eq!(Rest(b"\x05abc").bytes(), Err(Malformed));
    }
}
