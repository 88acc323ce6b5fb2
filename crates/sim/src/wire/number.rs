//! Whole numbers as bytes.

/// Appends `value` in decimal.
pub(super) fn push_number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut place = digits.len();
    loop {
        place -= 1;
        digits[place] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[place..]);
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_decimal() {
        for value in [0, 7, 10, 99, 1_000_000, u64::MAX] {
            let mut out = Vec::new();
            super::push_number(&mut out, value);
            assert_eq!(out, value.to_string().as_bytes());
        }
    }
}
