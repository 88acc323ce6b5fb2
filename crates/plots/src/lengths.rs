//! How long the prompts and the answers of a run were.

use crate::chart::{BELOW, Frame, Ticks};
use crate::scale::{Scale, ScaleKind};
use crate::svg::{Anchor, Drawing, Picture};
use serde::{Deserialize, Serialize};

/// Classes of each histogram.
const BINS: usize = 30;
/// Most bars of the chart by request; of more requests several share one.
const MOST_BARS: usize = 300;

const WIDTH: f64 = 1120.0;
const HEIGHT: f64 = 800.0;

/// The lengths of a run's requests, as they were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LengthStatistics {
    /// The picture's title.
    pub title: String,
    /// Tokens sent and received of each request, in the order of the run.
    pub tokens: Vec<(u64, u64)>,
}

impl LengthStatistics {
    /// Four panels: histograms of prompt, output and total tokens (30 classes from the least to the
    /// most), and both lengths of each request, one on top of the other.
    pub fn picture(&self) -> Picture {
        let mut drawing = Drawing::default();
        let title = crate::svg::shortened(&self.title, 17.0, WIDTH - 48.0);
        drawing.text("title", (24.0, 34.0), Anchor::Start, &title);
        let panel = |column: f64, row: f64| {
            let (width, height) = ((WIDTH - 24.0) / 2.0, (HEIGHT - 60.0) / 2.0);
            (12.0 + column * width, 52.0 + row * height, width, height)
        };
        let prompts: Vec<u64> = self.tokens.iter().map(|(prompt, _)| *prompt).collect();
        let outputs: Vec<u64> = self.tokens.iter().map(|(_, output)| *output).collect();
        let totals: Vec<u64> =
            self.tokens.iter().map(|(prompt, output)| prompt.saturating_add(*output)).collect();
        histogram(&mut drawing, panel(0.0, 0.0), "prompt", "Prompt tokens", &prompts);
        histogram(&mut drawing, panel(1.0, 0.0), "output", "Output tokens", &outputs);
        let label = "Total tokens (prompt + output)";
        histogram(&mut drawing, panel(0.0, 1.0), "total", label, &totals);
        self.by_request(&mut drawing, panel(1.0, 1.0));
        let description = format!(
            "Token lengths of {} requests: {} prompt tokens, {} output tokens",
            self.tokens.len(),
            sum(&prompts),
            sum(&outputs)
        );
        drawing.finish((WIDTH, HEIGHT), &self.title, &description)
    }

    fn by_request(&self, drawing: &mut Drawing, panel: (f64, f64, f64, f64)) {
        let count = self.tokens.len();
        let each = count.div_ceil(MOST_BARS).max(1);
        let mean = |part: &[(u64, u64)], side: fn(&(u64, u64)) -> u64| {
            part.iter().map(|both| side(both) as f64).sum::<f64>() / part.len() as f64
        };
        let bars: Vec<(f64, f64)> = self
            .tokens
            .chunks(each)
            .map(|part| (mean(part, |both| both.0), mean(part, |both| both.1)))
            .collect();
        let tops = bars.iter().map(|(prompt, output)| prompt + output);
        let y = Scale::covering(ScaleKind::Linear, tops.chain([0.0]), 5);
        // Bars reach from one request to the next, so the last number is one past the end.
        let x = Scale::counting((bars.len() * each) as u64, 6);
        let y_ticks = Ticks::of(&y);
        let frame = inside(panel, &y_ticks);
        drawing.text(
            "head",
            (frame.left, frame.top - 14.0),
            Anchor::Start,
            "Tokens of each request",
        );
        let label = match each {
            1 => "Request".to_owned(),
            _ => format!("Request (each bar is the mean of {each})"),
        };
        frame.axes(drawing, (&Ticks::of(&x), &label), (&y_ticks, "Tokens"));
        for (index, (prompt, output)) in bars.iter().enumerate() {
            let first = index * each;
            let last = (first + each).min(count);
            let left = frame.x(x.place(first as f64));
            let width =
                (frame.x(x.place(last as f64)) - left) * if bars.len() < 80 { 0.85 } else { 1.0 };
            let (base, seam, top) = (
                frame.y(y.place(0.0)),
                frame.y(y.place(*prompt)),
                frame.y(y.place(prompt + output)),
            );
            drawing.rectangle("prompt", (left, seam), (width, base - seam));
            drawing.rectangle("output", (left, top), (width, seam - top));
        }
        let mut right = frame.x(1.0);
        for (class, name) in [("output", "output"), ("prompt", "prompt")] {
            right -= crate::svg::width(name, 12.0);
            drawing.text("tick", (right, frame.top - 14.0), Anchor::Start, name);
            right -= 17.0;
            drawing.rectangle(class, (right, frame.top - 24.0), (12.0, 12.0));
            right -= 16.0;
        }
    }
}

fn histogram(
    drawing: &mut Drawing,
    panel: (f64, f64, f64, f64),
    class: &str,
    label: &str,
    values: &[u64],
) {
    let bins = Bins::of(values);
    let most = bins.counts.iter().max().copied().unwrap_or(0);
    let y = Scale::counting(most, 5);
    let x = Scale::covering(ScaleKind::Linear, [bins.low, bins.high], 6);
    let y_ticks = Ticks::of(&y);
    let frame = inside(panel, &y_ticks);
    drawing.text("head", (frame.left, frame.top - 14.0), Anchor::Start, label);
    let mean = (!values.is_empty()).then(|| sum(values) as f64 / values.len() as f64);
    let note = match (mean, values.iter().min(), values.iter().max()) {
        (Some(mean), Some(least), Some(most)) => {
            format!("{least} to {most}, mean {mean:.1} (dashed)")
        }
        _ => "no requests".to_owned(),
    };
    drawing.text("note", (frame.x(1.0), frame.top - 14.0), Anchor::End, &note);
    frame.axes(drawing, (&Ticks::of(&x), label), (&y_ticks, "Requests"));
    let edge = |bin: usize| {
        let share = bin as f64 / BINS as f64;
        bins.low * (1.0 - share) + bins.high * share
    };
    for (bin, count) in bins.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        let (left, right) = (frame.x(x.place(edge(bin))), frame.x(x.place(edge(bin + 1))));
        let top = frame.y(y.place(*count as f64));
        drawing.open_with_tip(&format!("{:.1} to {:.1}: {count}", edge(bin), edge(bin + 1)));
        let gap = if right - left > 3.0 { 1.0 } else { 0.0 };
        drawing.rectangle(class, (left, top), (right - left - gap, frame.y(0.0) - top));
        drawing.close();
    }
    if let Some(mean) = mean {
        let here = frame.x(x.place(mean));
        drawing.line("mean", (here, frame.y(0.0)), (here, frame.top));
    }
}

/// The axes' rectangle in a panel (left, top, width, height).
fn inside((left, top, width, height): (f64, f64, f64, f64), y: &Ticks) -> Frame {
    let room = y.room();
    Frame {
        left: left + room,
        top: top + 30.0,
        width: width - room - 26.0,
        height: height - 30.0 - BELOW - 6.0,
    }
}

fn sum(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, value| sum.saturating_add(*value))
}

/// Equal classes from the least to the most; the last one holds the most too.
#[derive(Debug, PartialEq)]
struct Bins {
    low: f64,
    high: f64,
    counts: [u64; BINS],
}

impl Bins {
    fn of(values: &[u64]) -> Self {
        let low = values.iter().min().map_or(0.0, |low| *low as f64);
        let high = values.iter().max().map_or(1.0, |high| *high as f64);
        // Of equal values, as NumPy does it.
        let (low, high) = if low < high { (low, high) } else { (low - 0.5, high + 0.5) };
        // Beyond 2^53 half a token is nothing; no such class may be empty.
        let high = if high > low { high } else { low * 1.1 };
        let mut counts = [0; BINS];
        for value in values {
            let bin = ((*value as f64 - low) / (high - low) * BINS as f64) as usize;
            counts[bin.min(BINS - 1)] += 1;
        }
        Self { low, high, counts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn classes_are_those_of_numpy() {
        // numpy.histogram([0, 1, 29, 30], bins=30)
        let bins = Bins::of(&[0, 1, 29, 30]);
        assert_eq!((bins.low, bins.high), (0.0, 30.0));
        assert_eq!((bins.counts[0], bins.counts[1], bins.counts[29]), (1, 1, 2));
        let same = Bins::of(&[7; 5]);
        assert_eq!((same.low, same.high, same.counts[15]), (6.5, 7.5, 5));
    }

    proptest! {
        #[test]
        fn every_request_is_in_one_class(values in proptest::collection::vec(any::<u64>(), 0..50)) {
            prop_assert_eq!(Bins::of(&values).counts.iter().sum::<u64>(), values.len() as u64);
        }
    }
}
