//! Tables of many figures' statistics, as pandas describes them.

use servebench_metrics::percentile;

/// A figure and its samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// Its samples, in any order.
    pub samples: Vec<f64>,
}

/// The percentiles that so many samples are worth, in percent: 25, 50, 75 and 90, and 99, 99.9, 99.99 from
/// 100, 1000, 10 000 samples on.
pub fn worthwhile_percentiles(samples: usize) -> Vec<f64> {
    let mut percentiles = vec![25.0, 50.0, 75.0, 90.0];
    for (least, percent) in [(100, 99.0), (1000, 99.9), (10_000, 99.99)] {
        if samples >= least {
            percentiles.push(percent);
        }
    }
    percentiles
}

/// One row for each series: count, mean, standard deviation (of a sample), least, percentiles, most, with up
/// to so many decimals. The table that pandas prints of `describe().transpose()`, but that long rows are not
/// broken.
pub fn describe(series: &[Series], percentiles: &[f64], decimals: usize) -> String {
    let names = series.iter().map(|series| series.name.clone());
    let mut lines: Vec<String> = std::iter::once(String::new()).chain(names).collect();
    pad(&mut lines, true);
    let mut headers = vec!["count".to_owned(), "mean".into(), "std".into(), "min".into()];
    headers.extend(percentiles.iter().map(|percent| format!("{percent}%")));
    headers.push("max".to_owned());
    let rows: Vec<Vec<f64>> = series.iter().map(|series| row(series, percentiles)).collect();
    for (column, header) in headers.into_iter().enumerate() {
        let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
        let mut cells = vec![header];
        cells.extend(numbers(&values, decimals));
        pad(&mut cells, false);
        for (line, cell) in lines.iter_mut().zip(cells) {
            line.push_str("  ");
            line.push_str(&cell);
        }
    }
    lines.join("\n")
}

fn row(series: &Series, percentiles: &[f64]) -> Vec<f64> {
    let mut sorted = series.samples.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let squares: f64 = sorted.iter().map(|sample| (sample - mean).powi(2)).sum();
    // Of one sample there is no deviation.
    let deviation = if sorted.len() > 1 { (squares / (count - 1.0)).sqrt() } else { f64::NAN };
    let at = |percent: f64| percentile(&sorted, percent).unwrap_or(f64::NAN);
    let mut row = vec![count, mean, deviation, at(0.0)];
    row.extend(percentiles.iter().map(|percent| at(*percent)));
    row.push(at(100.0));
    row
}

/// With as many decimals as one of them needs, one at least.
fn numbers(values: &[f64], decimals: usize) -> Vec<String> {
    let is_number = |text: &String| text != "NaN";
    let written = |value: &f64| {
        if value.is_nan() { "NaN".to_owned() } else { format!("{value:.decimals$}") }
    };
    let mut texts: Vec<String> = values.iter().map(written).collect();
    for _ in 1..decimals {
        if !texts.iter().filter(|text| is_number(text)).all(|text| text.ends_with('0')) {
            break;
        }
        for text in texts.iter_mut().filter(|text| is_number(text)) {
            text.pop();
        }
    }
    texts
}

/// To one width.
fn pad(cells: &mut [String], left: bool) {
    let width = cells.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
    for cell in cells {
        *cell = if left { format!("{cell:<width$}") } else { format!("{cell:>width$}") };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_need_samples() {
        assert_eq!(worthwhile_percentiles(99), [25.0, 50.0, 75.0, 90.0]);
        assert_eq!(worthwhile_percentiles(1000).last(), Some(&99.9));
        assert_eq!(worthwhile_percentiles(10_000).len(), 7);
    }

    #[test]
    fn whole_numbers_keep_one_decimal() {
        let series = |name: &str, samples: &[f64]| Series {
            name: name.to_owned(),
            samples: samples.to_vec(),
        };
        let rows = [series("a", &[3.0, 1.0, 2.5]), series("longer", &[7.0])];
        // Printed by pandas.
        let want = "        count  mean   std  min  50%  max
a         3.0  2.17  1.04  1.0  2.5  3.0
longer    1.0  7.00   NaN  7.0  7.0  7.0";
        assert_eq!(describe(&rows, &[50.0], 2), want);
    }
}
