//! Charts for terminals and logs: plain text, no colours, no cursor movement.

use servebench_metrics::Series;
use std::fmt::Write;

/// Rows that a chart has at most.
const ROWS: usize = 10;
/// Fewest columns between two numbers below a chart.
const APART: usize = 10;
/// Narrowest chart, its numbers left out; below that lines are as long as they are.
const NARROWEST: usize = 10;
/// Parts of a character's height, from one eighth on.
const PARTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How many steps a [`Series`] may have to be drawn `columns` wide with one character for each.
pub fn plot_steps(columns: usize) -> usize {
    // What the numbers at the side need is known only with the series; this is enough for a million.
    columns.saturating_sub(10).max(NARROWEST)
}

/// Two charts of a run over its seconds, `columns` wide: output tokens per second and requests in
/// flight. The first is left out for runs that have no tokens, both where nothing succeeded.
pub fn plot(series: &Series, tokens: bool, columns: usize) -> String {
    let in_flight: Vec<f64> = series.in_flight.iter().map(|count| *count as f64).collect();
    let step = number(series.step);
    let mut text = String::new();
    if tokens && !series.tokens_per_s.is_empty() {
        let title = format!("Output tokens per second (mean of each {step} s)");
        text.push_str(&chart(&title, &series.tokens_per_s, series.step, columns));
        text.push('\n');
    }
    if !in_flight.is_empty() {
        let title = format!("Concurrent requests (most at once in each {step} s)");
        text.push_str(&chart(&title, &in_flight, series.step, columns));
    }
    text
}

/// One chart: a bar for each value, a scale at the left, seconds below.
fn chart(title: &str, values: &[f64], step: f64, columns: usize) -> String {
    let highest = values.iter().copied().fold(0.0, f64::max);
    let scale = Scale::of(highest);
    let side = (0..=scale.ticks).map(|tick| number(scale.at(tick)).len()).max().unwrap_or(0);
    let room = columns.saturating_sub(side + 3).max(NARROWEST);
    // As wide as fits; more values than columns make the chart wider than it should be.
    let each = (room / values.len()).max(1);
    let mut text = format!("{title}\n");
    for row in (0..scale.rows()).rev() {
        let above = row + 1;
        let label = if above % scale.rows_per_tick == 0 {
            number(scale.at(above / scale.rows_per_tick))
        } else {
            String::new()
        };
        let mark = if label.is_empty() { '│' } else { '┤' };
        let bars: String = values
            .iter()
            .flat_map(|value| std::iter::repeat_n(scale.part(*value, row), each))
            .collect();
        line(&mut text, &format!("{label:>side$} {mark}{bars}"));
    }
    let width = values.len() * each;
    let time = Time::of(step * values.len() as f64, width);
    let mut axis = vec!['─'; width];
    let mut numbers = String::new();
    for tick in 0.. {
        let column = time.column(tick);
        if column >= width {
            break;
        }
        axis[column] = '┬';
        let label = number(time.step * f64::from(tick));
        let gap = column.saturating_sub(numbers.chars().count());
        // Writing to a string cannot fail.
        let _ = write!(numbers, "{:gap$}{label}", "");
    }
    line(&mut text, &format!("{:>side$} ┼{}", "0", axis.into_iter().collect::<String>()));
    line(&mut text, &format!("{:>side$}  {numbers}", ""));
    line(&mut text, &format!("{:>side$}  {} since the first request", "", time.unit));
    text
}

fn line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// The scale at the left: from 0 on, with round numbers.
#[derive(Debug)]
struct Scale {
    /// From one number to the next.
    step: f64,
    /// Numbers above 0.
    ticks: usize,
    rows_per_tick: usize,
}

impl Scale {
    fn of(highest: f64) -> Self {
        let step = if highest <= 1.0 { 1.0 } else { round_up(highest / 5.0).max(1.0) };
        let ticks = ((highest / step).ceil() as usize).clamp(1, 5);
        Self { step, ticks, rows_per_tick: ROWS / ticks }
    }

    fn at(&self, tick: usize) -> f64 {
        self.step * tick as f64
    }

    fn rows(&self) -> usize {
        self.ticks * self.rows_per_tick
    }

    /// What a bar of height `value` shows in a row, counted from below. Of what is not nothing
    /// something is seen.
    fn part(&self, value: f64, row: usize) -> char {
        let parts = PARTS.len();
        let eighths = value / self.step * (self.rows_per_tick * parts) as f64;
        let eighths = if value > 0.0 { (eighths.round() as usize).max(1) } else { 0 };
        match eighths.saturating_sub(row * parts).min(parts) {
            0 => ' ',
            part => PARTS[part - 1],
        }
    }
}

/// The scale below.
#[derive(Debug)]
struct Time {
    /// From one number to the next, in the unit.
    step: f64,
    unit: &'static str,
    columns_per_unit: f64,
}

impl Time {
    fn of(seconds: f64, width: usize) -> Self {
        let (unit, length) = match seconds {
            ..=600.0 => ("seconds", 1.0),
            ..=10_800.0 => ("minutes", 60.0),
            _ => ("hours", 3600.0),
        };
        let columns_per_unit = width as f64 / (seconds / length);
        let step = round_up(APART as f64 / columns_per_unit);
        Self { step, unit, columns_per_unit }
    }

    fn column(&self, tick: u32) -> usize {
        (self.step * f64::from(tick) * self.columns_per_unit).round() as usize
    }
}

/// The next of 1, 2 and 5 times a power of ten.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    // A little less than twice something is twice it: quotients are not exact.
    let close = |times: f64| value <= times * power * (1.0 + 1e-9);
    [1.0, 2.0, 5.0].into_iter().find(|times| close(*times)).unwrap_or(10.0) * power
}

/// A number without needless digits.
fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_chart_to_the_character() {
        let series = Series {
            step: 1.0,
            tokens_per_s: vec![0.0, 250.0, 1000.0, 2130.0, 10.0],
            in_flight: vec![1, 2, 3, 2, 0],
        };
        let want = "\
Output tokens per second (mean of each 1 s)
2500 ┤
     │                  ▄▄▄▄▄▄
2000 ┤                  ██████
     │                  ██████
1500 ┤                  ██████
     │                  ██████
1000 ┤            ████████████
     │            ████████████
 500 ┤            ████████████
     │      ██████████████████▁▁▁▁▁▁
   0 ┼┬───────────┬───────────┬─────
      0           2           4
      seconds since the first request

Concurrent requests (most at once in each 1 s)
3 ┤              ███████
  │              ███████
  │              ███████
2 ┤       █████████████████████
  │       █████████████████████
  │       █████████████████████
1 ┤████████████████████████████
  │████████████████████████████
  │████████████████████████████
0 ┼┬─────────────┬─────────────┬──────
   0             2             4
   seconds since the first request
";
        assert_eq!(plot(&series, true, 40), want);
        let (_, second) = want.split_once("\n\n").expect("two charts");
        assert_eq!(plot(&series, false, 40), second);
        let nothing = Series { step: 1.0, tokens_per_s: vec![], in_flight: vec![] };
        assert_eq!(plot(&nothing, true, 40), "");
    }

    #[test]
    fn hours_have_their_own_unit_and_the_smallest_bar_is_seen() {
        let mut values = vec![40_000.0; 72];
        values[0] = 1.0;
        values[71] = 0.0;
        let text = chart("t", &values, 200.0, 80);
        let want = "\
t
40000 ┤ ██████████████████████████████████████████████████████████████████████
      │ ██████████████████████████████████████████████████████████████████████
30000 ┤ ██████████████████████████████████████████████████████████████████████
      │ ██████████████████████████████████████████████████████████████████████
20000 ┤ ██████████████████████████████████████████████████████████████████████
      │ ██████████████████████████████████████████████████████████████████████
10000 ┤ ██████████████████████████████████████████████████████████████████████
      │▁██████████████████████████████████████████████████████████████████████
    0 ┼┬─────────────────┬─────────────────┬─────────────────┬─────────────────
       0                 1                 2                 3
       hours since the first request
";
        assert_eq!(text, want);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    proptest! {
        #[test]
        fn charts_fit_and_never_panic(
            values in prop::collection::vec(0.0..1e9_f64, 1..400),
            step in prop::sample::select(vec![0.1, 0.2, 0.5, 1.0, 50.0, 1000.0]),
            columns in 0..300_usize,
        ) {
            let text = chart("t", &values, step, columns);
            if plot_steps(columns) >= values.len() && columns > 40 {
                let most = text.lines().map(|line| line.chars().count()).max();
                // A number may stand out at the right.
                prop_assert!(most <= Some(columns + 6), "{text}");
            }
            prop_assert_eq!(text.lines().filter(|line| line.contains('┼')).count(), 1);
        }

        #[test]
        fn round_numbers_are_not_below_and_not_far_above(value in 1e-6..1e12_f64) {
            let round = round_up(value);
            prop_assert!(value <= round * (1.0 + 1e-8) && round < value * 2.51, "{value} {round}");
        }
    }
}
