//! One set of axes: where it lies, its grid, ticks and labels.

use crate::scale::Scale;
use crate::svg::{Anchor, Drawing, shortened, width};

/// Room below the axes: ticks, their labels, the axis label.
pub(crate) const BELOW: f64 = 48.0;
/// Font sizes of the style sheet.
const TICK: f64 = 12.0;
const LABEL: f64 = 13.0;

/// Where the ticks of an axis are, from 0 to 1, and what is written there.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ticks {
    places: Vec<(f64, String)>,
    /// A line across the chart at every tick.
    grid: bool,
}

impl Ticks {
    pub(crate) fn of(scale: &Scale) -> Self {
        let labels = scale.ticks().iter().zip(scale.labels());
        let places = labels.map(|(tick, label)| (scale.place(*tick), label)).collect();
        Self { places, grid: true }
    }

    /// Names, side by side.
    pub(crate) fn named(names: &[String]) -> Self {
        let places = names.iter().enumerate();
        let places = places.map(|(index, name)| (middle(index, names.len()), name.clone()));
        Self { places: places.collect(), grid: false }
    }

    /// The room that the labels need when they stand left of the axes, with the axis label.
    pub(crate) fn room(&self) -> f64 {
        let widest = self.places.iter().map(|(_, label)| width(label, TICK)).fold(0.0, f64::max);
        widest + 38.0
    }
}

/// The place of the middle of the `index`-th of `count` columns.
pub(crate) fn middle(index: usize, count: usize) -> f64 {
    (index as f64 + 0.5) / count.max(1) as f64
}

/// The rectangle between the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Frame {
    pub(crate) fn x(&self, place: f64) -> f64 {
        self.left + place * self.width
    }

    /// Up is more.
    pub(crate) fn y(&self, place: f64) -> f64 {
        self.top + (1.0 - place) * self.height
    }

    /// Draws grid, axes, ticks and labels.
    pub(crate) fn axes(
        &self,
        drawing: &mut Drawing,
        (x, x_label): (&Ticks, &str),
        (y, y_label): (&Ticks, &str),
    ) {
        let (bottom, right) = (self.y(0.0), self.x(1.0));
        for (place, label) in &y.places {
            let here = self.y(*place);
            if y.grid {
                drawing.line("grid", (self.left, here), (right, here));
            }
            drawing.line("axis", (self.left - 4.0, here), (self.left, here));
            drawing.text("tick", (self.left - 8.0, here + 4.0), Anchor::End, label);
        }
        let room = self.width / x.places.len().max(1) as f64;
        let mut end = f64::NEG_INFINITY;
        for (place, label) in &x.places {
            let here = self.x(*place);
            if x.grid {
                drawing.line("grid", (here, self.top), (here, bottom));
            }
            drawing.line("axis", (here, bottom), (here, bottom + 4.0));
            let label = shortened(label, TICK, room.max(60.0) - 6.0);
            let half = width(&label, TICK) / 2.0;
            if here - half > end {
                drawing.text("tick", (here, bottom + 18.0), Anchor::Middle, &label);
                end = here + half + 6.0;
            }
        }
        let x_label = shortened(x_label, LABEL, self.width + 40.0);
        let y_label = shortened(y_label, LABEL, self.height + 20.0);
        drawing.line("axis", (self.left, bottom), (right, bottom));
        drawing.line("axis", (self.left, self.top), (self.left, bottom));
        drawing.text("label", (self.x(0.5), bottom + 38.0), Anchor::Middle, &x_label);
        drawing.text_upwards("label", (self.left - y.room() + 16.0, self.y(0.5)), &y_label);
    }
}

/// A variable's name as a person writes it, with its unit: `median_ttft_ms` is `Median TTFT (ms)`.
///
/// What is not made of lower-case words stays as it is.
pub(crate) fn readable(key: &str) -> String {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.".contains(&byte);
    if key.is_empty() || !key.bytes().all(plain) {
        return key.to_owned();
    }
    let unit = match key {
        "request_throughput" | "request_rate" | "request_goodput" => " (requests/s)",
        "duration" => " (s)",
        _ if key.ends_with("_throughput") => " (tokens/s)",
        _ if key.ends_with("_ms") => " (ms)",
        _ if key.ends_with("_s") => " (s)",
        _ => "",
    };
    let words = key.trim_end_matches("_ms").trim_end_matches("_s");
    let words: Vec<String> = words
        .split('_')
        .enumerate()
        .map(|(index, word)| match word {
            "ttft" | "itl" | "tpot" | "e2el" | "e2e" | "gpu" | "rtfx" | "id" | "lora" => {
                word.to_uppercase()
            }
            _ if index == 0 => {
                let mut letters = word.chars();
                letters
                    .next()
                    .map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
            }
            _ => word.to_owned(),
        })
        .collect();
    format!("{}{unit}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_middles() {
        let middles = [middle(0, 2), middle(1, 2)].map(|place| place.to_string());
        assert_eq!(middles, ["0.25", "0.75"]);
    }

    #[test]
    fn variables_become_words() {
        for (key, wanted) in [
            ("median_ttft_ms", "Median TTFT (ms)"),
            ("total_token_throughput", "Total token throughput (tokens/s)"),
            ("p99.9_itl_ms", "P99.9 ITL (ms)"),
            ("max_concurrency", "Max concurrency"),
            ("My key", "My key"),
            ("", ""),
        ] {
            assert_eq!(readable(key), wanted);
        }
    }
}
