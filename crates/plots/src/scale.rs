//! From values to places: scales and their ticks.

use crate::PlotError;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// How an axis spreads its values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScaleKind {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal factors; only values above 0 have a place.
    Log,
    /// Equal steps of the square root; only values from 0 up have a place.
    Sqrt,
}

impl FromStr for ScaleKind {
    type Err = PlotError;

    fn from_str(text: &str) -> Result<Self, PlotError> {
        match text {
            "linear" => Ok(Self::Linear),
            "log" => Ok(Self::Log),
            "sqrt" => Ok(Self::Sqrt),
            other => Err(PlotError::Scale(other.to_owned())),
        }
    }
}

impl ScaleKind {
    /// True when the value has a place on an axis of this kind.
    pub fn places(self, value: f64) -> bool {
        // Beyond this, differences of values overflow; nothing measured comes near.
        value.abs() <= 1e300
            && match self {
                Self::Linear => true,
                Self::Log => value >= 1e-300,
                Self::Sqrt => value >= 0.0,
            }
    }

    fn bend(self, value: f64) -> f64 {
        match self {
            Self::Linear => value,
            Self::Log => value.log10(),
            Self::Sqrt => value.sqrt(),
        }
    }
}

/// The values of an axis: from its first to its last tick, all data in between.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scale {
    kind: ScaleKind,
    ticks: Vec<f64>,
}

impl Scale {
    /// A scale for these values, with about `wanted` ticks. Values without a place are left out.
    pub(crate) fn covering(
        kind: ScaleKind,
        values: impl IntoIterator<Item = f64>,
        wanted: usize,
    ) -> Self {
        let placed = values.into_iter().filter(|value| kind.places(*value));
        let (low, high) = placed.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
            (low.min(value), high.max(value))
        });
        let (low, high) = if low <= high { (low, high) } else { (1.0, 10.0) };
        let ticks = match kind {
            ScaleKind::Linear => linear(low, high, wanted),
            ScaleKind::Log => logarithmic(low, high, wanted),
            // Linear ticks, from 0 when the values are that spread out.
            ScaleKind::Sqrt => {
                let mut ticks = linear(if low < 0.5 * high { 0.0 } else { low }, high, wanted);
                ticks.retain(|tick| *tick >= 0.0);
                if ticks.first().is_none_or(|first| *first > low) {
                    ticks.insert(0, 0.0);
                }
                ticks
            }
        };
        Self { kind, ticks }
    }

    /// A linear scale from 0 for whole numbers: no tick between two of them.
    pub(crate) fn counting(largest: u64, wanted: usize) -> Self {
        let wanted = wanted.min(usize::try_from(largest).unwrap_or(wanted));
        Self::covering(ScaleKind::Linear, [0.0, largest.max(1) as f64], wanted)
    }

    /// Where the value lies: 0 at the first tick, 1 at the last.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (Some(first), Some(last)) = (self.ticks.first(), self.ticks.last()) else { return 0.0 };
        let (first, last) = (self.kind.bend(*first), self.kind.bend(*last));
        (self.kind.bend(value) - first) / (last - first)
    }

    /// As [`Scale::place`], with values beyond the ends moved to them.
    pub(crate) fn clamped(&self, value: f64) -> f64 {
        let place = if self.kind.places(value) { self.place(value) } else { 0.0 };
        place.clamp(0.0, 1.0)
    }

    /// At least two, rising.
    pub(crate) fn ticks(&self) -> &[f64] {
        &self.ticks
    }

    /// What is written at each tick.
    pub(crate) fn labels(&self) -> Vec<String> {
        let steps = self.ticks.windows(2).map(|pair| pair[1] - pair[0]);
        let step = steps.fold(f64::INFINITY, f64::min);
        let largest = self.ticks.iter().fold(0.0, |largest: f64, tick| largest.max(tick.abs()));
        match self.kind {
            // Each to its own precision: 0.1, 1, 10, 100k.
            ScaleKind::Log => self.ticks.iter().map(|tick| label(*tick, *tick, *tick)).collect(),
            _ => self.ticks.iter().map(|tick| label(*tick, step, largest)).collect(),
        }
    }
}

/// Multiples of 1, 2 or 5 times a power of ten, from at most `low` to at least `high`.
fn linear(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let largest = low.abs().max(high.abs());
    let (low, high) = if high - low > largest * 1e-9 && high - low > 1e-290 {
        (low, high)
    } else if largest > 1e-280 {
        (low - 0.05 * largest, high + 0.05 * largest) // one value: room on both sides
    } else {
        (0.0, 1.0)
    };
    let step = round_step((high - low) / wanted.max(1) as f64);
    let (first, last) = ((low / step).floor(), (high / step).ceil());
    let count = (last - first).clamp(1.0, 1000.0) as usize;
    let power = step.log10().floor();
    (0..=count)
        .map(|tick| {
            let tick = (first + tick as f64) * step;
            // 0.30000000000000004 is 0.3.
            if (-15.0..=15.0).contains(&power) {
                let digits = (1.0 - power).clamp(0.0, 16.0);
                let unit = 10f64.powi(digits as i32);
                let rounded = (tick * unit).round() / unit;
                if rounded.is_finite() { rounded } else { tick }
            } else {
                tick
            }
        })
        .collect()
}

/// The smallest of 1, 2 and 5 times a power of ten that is no less than `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let power = if power > 0.0 && power.is_finite() { power } else { step };
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| nice * power >= step * (1.0 - 1e-9));
    nice.unwrap_or(10.0) * power
}

/// Powers of ten, all or some of them; with 2 and 5 times each where there are few; and at both ends the
/// next of these, so that little room is lost.
fn logarithmic(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    let nice = |power: i32| [1.0, 2.0, 5.0].map(|nice| nice * 10f64.powi(power));
    let all: Vec<f64> = (first - 1..=last + 1).flat_map(nice).collect();
    let begin = all.iter().rposition(|tick| *tick <= low).unwrap_or(0);
    let end = all.iter().position(|tick| *tick >= high).unwrap_or(all.len() - 1);
    // One value: room on both sides.
    let room = usize::from(begin == end);
    let (begin, end) = (begin.saturating_sub(room), (end + room).min(all.len() - 1));
    let inside = all.get(begin..=end).unwrap_or_default();
    let decades = (high / low).log10();
    if decades <= 3.0 {
        return inside.to_vec();
    }
    let stride = (decades / wanted.max(1) as f64).ceil();
    let whole = |place: usize| place.is_multiple_of(3); // a power of ten
    let stands = |place: usize| {
        // Not so near an end that labels would touch.
        let room = ((place - begin).min(end - place)) as f64 / 3.0;
        let power = f64::from(first - 1) + (place / 3) as f64;
        whole(place) && power.rem_euclid(stride) < 0.5 && room > decades / 20.0
    };
    (begin..=end)
        .filter(|place| *place == begin || *place == end || stands(*place))
        .filter_map(|place| all.get(place).copied())
        .collect()
}

/// A number with the decimals that steps of `step` need, and a suffix when the largest is long.
fn label(value: f64, step: f64, largest: f64) -> String {
    let (unit, suffix) = match largest.abs() {
        size if size >= 1e15 => return format!("{value:.1e}"),
        size if size >= 1e12 => (1e12, "T"),
        size if size >= 1e9 => (1e9, "G"),
        size if size >= 1e6 => (1e6, "M"),
        size if size >= 1e4 => (1e3, "k"),
        size if size >= 1e-4 || size == 0.0 => (1.0, ""),
        _ => return format!("{value:.1e}"),
    };
    if value == 0.0 {
        return "0".to_owned();
    }
    let step = step / unit;
    let decimals = (0..9).find(|digits| {
        let scaled = step * 10f64.powi(*digits);
        (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1.0) && scaled.round() != 0.0
    });
    format!("{:.*}{suffix}", decimals.unwrap_or(9) as usize, value / unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(kind: ScaleKind, values: &[f64]) -> Vec<String> {
        Scale::covering(kind, values.iter().copied(), 5).labels()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(labels(ScaleKind::Linear, &[0.0, 93.0]), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(labels(ScaleKind::Linear, &[0.12, 0.41]), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
        assert_eq!(
            labels(ScaleKind::Linear, &[0.0, 41_000.0]),
            ["0", "10k", "20k", "30k", "40k", "50k"]
        );
        assert_eq!(
            labels(ScaleKind::Log, &[3.0, 40_000.0]),
            ["2", "10", "100", "1000", "10k", "50k"]
        );
        assert_eq!(labels(ScaleKind::Log, &[3.0, 40.0]), ["2", "5", "10", "20", "50"]);
        assert_eq!(labels(ScaleKind::Sqrt, &[1.0, 93.0]), ["0", "20", "40", "60", "80", "100"]);
    }

    #[test]
    fn counts_are_whole() {
        for (largest, wanted) in [(0, "01"), (1, "01"), (2, "012"), (7, "02468")] {
            assert_eq!(Scale::counting(largest, 5).labels().concat(), wanted);
        }
    }

    #[test]
    fn one_value_has_room_around_it() {
        let scale = Scale::covering(ScaleKind::Linear, [50.0], 5);
        assert!((scale.place(50.0) - 0.5).abs() < 0.2, "{:?}", scale.ticks());
        assert_eq!(labels(ScaleKind::Log, &[100.0]), ["50", "100", "200"]);
        assert_eq!(Scale::covering(ScaleKind::Linear, [], 5).ticks().first(), Some(&0.0));
    }

    #[test]
    fn scales_have_names() {
        assert_eq!("log".parse(), Ok(ScaleKind::Log));
        assert_eq!("logit".parse::<ScaleKind>(), Err(PlotError::Scale("logit".into())));
    }

    proptest! {
        /// Ticks rise and cover the data; places rise with the values and stay between 0 and 1.
        #[test]
        fn scales_cover_and_are_monotone(
            kind in prop_oneof![Just(ScaleKind::Linear), Just(ScaleKind::Log), Just(ScaleKind::Sqrt)],
            mut values in proptest::collection::vec(
                prop_oneof![any::<f64>(), -1e3..1e3f64, 0.0..1e-3f64], 0..20),
            wanted in 1usize..12,
        ) {
            let scale = Scale::covering(kind, values.iter().copied(), wanted);
            let ticks = scale.ticks();
            prop_assert!((2..=1002).contains(&ticks.len()), "{ticks:?}");
            prop_assert!(ticks.windows(2).all(|pair| pair[0] < pair[1]), "{ticks:?}");
            prop_assert_eq!(scale.labels().len(), ticks.len());
            values.retain(|value| kind.places(*value));
            values.sort_by(f64::total_cmp);
            let places: Vec<f64> = values.iter().map(|value| scale.place(*value)).collect();
            prop_assert!(places.is_sorted(), "{places:?}");
            for place in places {
                prop_assert!((-1e-9..=1.0 + 1e-9).contains(&place), "{place} {values:?} {ticks:?}");
            }
        }
    }
}
