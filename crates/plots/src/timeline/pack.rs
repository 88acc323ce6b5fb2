//! Rows as bytes for the page's script.
//!
//! A row is a sequence of LEB128 numbers: the start less the last row's start (zigzag); flags; TTFT; its
//! uncertainty (if flagged); prompt and output tokens; the error's place (if flagged); the number of
//! runs; and, if there are any, median, 99th percentile and largest gap, the number of inexact gaps
//! (if flagged), and of each run `gaps * 4 + class` and length. Times are microseconds.

use super::Row;

/// The first token never came.
const NO_TOKEN: u64 = 1;
const FAILED: u64 = 2;
/// The first token may have come earlier.
const TTFT_BOUNDED: u64 = 4;
const ITL_BOUNDED: u64 = 8;

/// All rows, one after the other.
pub(super) fn pack(rows: &[Row]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * 32);
    let first = rows.iter().map(|row| row.start).min().unwrap_or(0);
    let mut last = 0;
    for row in rows {
        // Both are below 2^53.
        let start = (row.start - first).cast_signed();
        number(&mut bytes, zigzag(start - last));
        last = start;
        let flags = [
            (row.ttft.is_none(), NO_TOKEN),
            (row.error > 0, FAILED),
            (row.ttft_uncertainty > 0, TTFT_BOUNDED),
            (row.inexact_itls > 0, ITL_BOUNDED),
        ];
        number(&mut bytes, flags.iter().filter(|(set, _)| *set).map(|(_, flag)| flag).sum());
        number(&mut bytes, row.ttft.unwrap_or(0));
        if row.ttft_uncertainty > 0 {
            number(&mut bytes, row.ttft_uncertainty);
        }
        number(&mut bytes, row.prompt_tokens);
        number(&mut bytes, row.output_tokens);
        if row.error > 0 {
            number(&mut bytes, row.error as u64 - 1);
        }
        number(&mut bytes, row.runs.len() as u64);
        if !row.runs.is_empty() {
            for statistic in [row.median_itl, row.p99_itl, row.largest_itl] {
                number(&mut bytes, statistic);
            }
        }
        if row.inexact_itls > 0 {
            number(&mut bytes, row.inexact_itls);
        }
        for run in &row.runs {
            number(&mut bytes, run.gaps * 4 + u64::from(run.class));
            number(&mut bytes, run.length);
        }
    }
    bytes
}

/// Small for what is near 0, on either side.
fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

fn number(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timeline::Run;

    #[test]
    fn a_row_has_these_bytes() {
        let row = Row {
            start: 1000,
            ttft: Some(300),
            ttft_uncertainty: 5,
            inexact_itls: 0,
            prompt_tokens: 128,
            output_tokens: 3,
            error: 1,
            median_itl: 10,
            p99_itl: 20,
            largest_itl: 21,
            runs: vec![Run { class: 2, gaps: 2, length: 31 }],
        };
        let later = Row {
            start: 999,
            ttft: None,
            ttft_uncertainty: 0,
            error: 0,
            runs: Vec::new(),
            ..row.clone()
        };
        let wanted: &[u8] = &[
            2,
            FAILED as u8 | TTFT_BOUNDED as u8,
            0xac,
            2,
            5,
            0x80,
            1,
            3,
            0,
            1,
            10,
            20,
            21,
            10,
            31,
            1,
            NO_TOKEN as u8,
            0,
            0x80,
            1,
            3,
            0,
        ];
        assert_eq!(pack(&[row, later]), wanted);
    }
}
