//! Numbers as Python prints them.

/// A float as Python's `repr` writes it: `50.0`, `inf`, `1e-05`, `1e+16`.
pub fn python_float(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    let scientific = format!("{value:e}");
    match exponent(&scientific) {
        Some((mantissa, exponent)) if !(-4..16).contains(&exponent) => {
            with_exponent(mantissa, exponent)
        }
        Some(_) if value.fract() == 0.0 => format!("{value:.1}"),
        _ => value.to_string(),
    }
}

/// A float as C's `%g` writes it: six significant digits, no trailing zeros.
pub fn percent_g(value: f64) -> String {
    const DIGITS: i32 = 6;
    let scientific = format!("{value:.5e}");
    match exponent(&scientific) {
        Some((mantissa, exponent)) if !(-4..DIGITS).contains(&exponent) => {
            with_exponent(without_zeros(mantissa), exponent)
        }
        Some((_, exponent)) => {
            let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
            without_zeros(&format!("{value:.decimals$}")).to_owned()
        }
        None => python_float(value),
    }
}

/// Mantissa and exponent of `1.5e-7`; `None` for what is not finite.
fn exponent(scientific: &str) -> Option<(&str, i32)> {
    let (mantissa, exponent) = scientific.split_once('e')?;
    Some((mantissa, exponent.parse().ok()?))
}

fn with_exponent(mantissa: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_as_python_writes_them() {
        let cases = [
            (50.0, "50.0"),
            (0.5, "0.5"),
            (-0.0, "-0.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.25e100, "1.25e+100"),
            (123_456_789.125, "123456789.125"),
        ];
        for (value, text) in cases {
            assert_eq!(python_float(value), text);
        }
    }

    #[test]
    fn floats_as_percent_g_writes_them() {
        let cases = [
            (500.0, "500"),
            (0.5, "0.5"),
            (0.0, "0"),
            (2.5e-4, "0.00025"),
            (1e-5, "1e-05"),
            (123_456.0, "123456"),
            (1_234_567.0, "1.23457e+06"),
            (999_999.5, "1e+06"),
            (100_000.0, "100000"),
            (3.140_000_9, "3.14"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(percent_g(value), text);
        }
    }
}
