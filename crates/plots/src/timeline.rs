//! The course of every request, as one page to zoom into.

mod pack;
mod runs;

use crate::page;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use runs::{Run, runs, shorten};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;

/// Most runs of gaps in a whole page. With more requests each one's are drawn more coarsely, so that a
/// page of 100 000 requests stays below 10 MB.
const MOST_RUNS: usize = 1_200_000;
/// Most runs of one request, however few requests there are.
const MOST_RUNS_EACH: usize = 512;
/// Longest error text that is kept, in characters.
const LONGEST_ERROR: usize = 200;

/// What stands around the bars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimelineOptions {
    /// The page's title.
    pub title: String,
    /// What was measured, as names and values: model, backend, request rate.
    pub details: Vec<(String, String)>,
    /// Gaps below the first are good, from the second on they are bad; milliseconds.
    pub thresholds_ms: [f64; 2],
}

impl Default for TimelineOptions {
    fn default() -> Self {
        Self {
            title: "Request timeline".to_owned(),
            details: Vec::new(),
            thresholds_ms: [25.0, 50.0],
        }
    }
}

/// One request of a [`Timeline`]. Times are seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimelineRequest<'a> {
    /// When it was sent, on any clock that all requests share.
    pub start_s: f64,
    /// From there to the first token; `None` when there was none.
    pub ttft_s: Option<f64>,
    /// By how much the first token may have come earlier; 0 when its stamp is exact.
    pub ttft_uncertainty_s: f64,
    /// The gaps between tokens.
    pub itls_s: Cow<'a, [f64]>,
    /// How many of the gaps are known within bounds only.
    pub inexact_itls: u64,
    /// Tokens sent.
    pub prompt_tokens: u64,
    /// Tokens received.
    pub output_tokens: u64,
    /// Why it failed; `None` when it did not.
    pub error: Option<Cow<'a, str>>,
}

/// Collects requests and writes them as one HTML file that needs nothing from outside.
///
/// Each request is a bar: the time to its first token, then the gaps between tokens, of which
/// neighbours of the same class (by the two thresholds) are one piece. Times are kept as whole
/// microseconds. A request costs about 25 bytes and 5 for each piece; above 1 200 000 pieces, or
/// 512 of a request, gaps are sorted by class within short stretches, and the page says so.
#[derive(Clone, Debug)]
pub struct Timeline {
    options: TimelineOptions,
    rows: Vec<Row>,
    errors: Vec<String>,
    places: HashMap<String, usize>,
    /// Runs of all rows.
    pieces: usize,
    thinned: bool,
    coarse: bool,
}

/// A request as it is packed. Times are microseconds.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    start: u64,
    ttft: Option<u64>,
    ttft_uncertainty: u64,
    inexact_itls: u64,
    prompt_tokens: u64,
    output_tokens: u64,
    /// 0 for none, else one more than its place among the errors.
    error: usize,
    median_itl: u64,
    p99_itl: u64,
    largest_itl: u64,
    runs: Vec<Run>,
}

/// What the page's script is given beside the packed rows.
#[derive(Serialize)]
struct Head<'a> {
    requests: usize,
    thresholds_ms: [f64; 2],
    coarse: bool,
    errors: &'a [String],
    rows: String,
}

impl Timeline {
    /// An empty timeline.
    pub fn new(options: TimelineOptions) -> Self {
        let (rows, errors, places) = (Vec::new(), Vec::new(), HashMap::new());
        Self { options, rows, errors, places, pieces: 0, thinned: false, coarse: false }
    }

    /// True while there is nothing to draw.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds a request; it is drawn below the one before. Times that are negative or not finite
    /// count as 0.
    pub fn push(&mut self, request: &TimelineRequest<'_>) {
        let mut runs = runs(&request.itls_s, self.options.thresholds_ms);
        self.coarse |= shorten(&mut runs, MOST_RUNS_EACH);
        self.pieces += runs.len();
        let mut sorted: Vec<u64> = request.itls_s.iter().copied().map(micros).collect();
        sorted.sort_unstable();
        let error = request.error.as_deref().map_or(0, |error| self.place_of(error));
        self.rows.push(Row {
            start: micros(request.start_s),
            ttft: request.ttft_s.map(micros),
            ttft_uncertainty: micros(request.ttft_uncertainty_s),
            inexact_itls: request.inexact_itls,
            prompt_tokens: request.prompt_tokens,
            output_tokens: request.output_tokens,
            error,
            median_itl: percentile(&sorted, 0.5),
            p99_itl: percentile(&sorted, 0.99),
            largest_itl: sorted.last().copied().unwrap_or(0),
            runs,
        });
        if self.pieces > 2 * MOST_RUNS {
            self.thin(); // not only at the end: memory is bounded too
        }
    }

    /// Shortens all rows to an equal share of the runs that a page may have.
    fn thin(&mut self) {
        let each = MOST_RUNS / self.rows.len().max(1);
        for row in &mut self.rows {
            self.coarse |= shorten(&mut row.runs, each);
            row.runs.shrink_to_fit();
        }
        self.thinned = true;
        self.pieces = self.rows.iter().map(|row| row.runs.len()).sum();
    }

    fn place_of(&mut self, error: &str) -> usize {
        let short: String = error.chars().take(LONGEST_ERROR).collect();
        let short = if short.len() < error.len() { short + "…" } else { short };
        let next = self.errors.len() + 1;
        let place = *self.places.entry(short.clone()).or_insert(next);
        if place == next {
            self.errors.push(short);
        }
        place
    }

    /// The page.
    pub fn into_html(mut self) -> String {
        // Also when it was done before: all rows are to be equally fine.
        if self.pieces > MOST_RUNS || self.thinned {
            self.thin();
        }
        let head = Head {
            requests: self.rows.len(),
            thresholds_ms: self.options.thresholds_ms,
            coarse: self.coarse,
            errors: &self.errors,
            rows: BASE64_STANDARD.encode(pack::pack(&self.rows)),
        };
        page::timeline(&self.options.title, &self.options.details, &head)
    }
}

/// Seconds as whole microseconds, at most what a double holds exactly.
fn micros(seconds: f64) -> u64 {
    // `as` maps NaN and what is below 0 to 0.
    ((seconds * 1e6).round() as u64).min(1 << 52)
}

/// By linear interpolation between the two nearest of the sorted values, as NumPy does; 0 of none.
fn percentile(sorted: &[u64], share: f64) -> u64 {
    let place = share * sorted.len().saturating_sub(1) as f64;
    let (below, above) = (place.floor() as usize, place.ceil() as usize);
    let (Some(low), Some(high)) = (sorted.get(below), sorted.get(above)) else { return 0 };
    let (low, high) = (*low as f64, *high as f64);
    (low + (high - low) * place.fract()).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(gaps: &[f64]) -> TimelineRequest<'_> {
        TimelineRequest { ttft_s: Some(0.1), itls_s: gaps.into(), ..TimelineRequest::default() }
    }

    #[test]
    fn percentiles_are_those_of_numpy() {
        assert_eq!(percentile(&[], 0.5), 0);
        assert_eq!(percentile(&[7], 0.99), 7);
        assert_eq!(percentile(&[10, 20, 30, 100], 0.5), 25);
        assert_eq!(percentile(&[10, 20, 30, 100], 0.99), 98); // 97.9
    }

    #[test]
    fn odd_times_count_as_zero() {
        assert_eq!([f64::NAN, -1.0, f64::NEG_INFINITY].map(micros), [0; 3]);
        assert_eq!(micros(f64::INFINITY), 1 << 52);
        assert_eq!(micros(0.025), 25_000);
    }

    #[test]
    fn equal_errors_are_kept_once() {
        let mut timeline = Timeline::new(TimelineOptions::default());
        for error in ["refused", "refused", &"x".repeat(1000)] {
            timeline.push(&TimelineRequest { error: Some(error.into()), ..request(&[]) });
        }
        assert_eq!(timeline.errors.len(), 2);
        assert_eq!(timeline.errors[1].chars().count(), LONGEST_ERROR + 1);
        assert_eq!(timeline.rows.iter().map(|row| row.error).collect::<Vec<_>>(), [1, 1, 2]);
    }

    #[test]
    fn many_jittery_requests_stay_small() {
        // Every gap is of another class than the one before: as many pieces as gaps.
        let gaps: Vec<f64> = (0..130).map(|gap| if gap % 2 == 0 { 0.02 } else { 0.06 }).collect();
        let mut timeline = Timeline::new(TimelineOptions::default());
        for start in 0..20_000 {
            timeline.push(&TimelineRequest { start_s: f64::from(start) * 0.01, ..request(&gaps) });
            assert!(timeline.pieces <= 2 * MOST_RUNS, "{} pieces in memory", timeline.pieces);
        }
        let html = timeline.into_html();
        assert!(html.len() < 9_000_000, "{} bytes", html.len());
        assert!(html.contains(r#""coarse":true"#));
    }
}
