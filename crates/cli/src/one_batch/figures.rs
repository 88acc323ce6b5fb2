//! From the frames of one batch to its figures.

use servebench_backends::batch::{RowEnd, Seen};
use servebench_core::Stamp;

/// What was asked of one batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Asked {
    /// Prompts.
    pub(super) rows: u32,
    /// Prompt tokens over the whole batch.
    pub(super) input_tokens: u64,
    /// The same as upstream reckons it.
    pub(super) upstream_input_tokens: u64,
    /// Most output tokens of each prompt.
    pub(super) output_len: u32,
    /// Whether throughput counts only the tokens after the last prompt's first one. Upstream counts all
    /// of them when every prompt runs to its length.
    pub(super) only_window: bool,
    /// Whether upstream takes every prompt to have its whole output (vLLM).
    pub(super) assumed_output: bool,
}

/// The figures of one batch; what cannot be told is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// From the start to the last line of the stream, in seconds.
    pub latency: f64,
    /// From the start to the first token of the last prompt to get one, in seconds.
    pub last_ttft: f64,
    /// The same of the first prompt to get one.
    pub first_ttft: f64,
    /// Prompt tokens over the whole batch.
    pub total_input_tokens: u64,
    /// Output tokens over the whole batch; as many as asked for where the route tells none.
    pub total_output_tokens: u64,
    /// Prompt tokens per second until [`last_ttft`](Self::last_ttft).
    pub input_throughput: Option<f64>,
    /// Output tokens per second after it.
    pub output_throughput: Option<f64>,
    /// All tokens over [`latency`](Self::latency).
    pub overall_throughput: Option<f64>,
    /// The three as upstream reckons them.
    pub upstream: UpstreamSpeeds,
    /// Prompts that stopped before their length.
    pub early_stopped: Option<u32>,
    /// The time in which all prompts were decoding.
    pub steady: Option<Steady>,
}

/// Throughput as upstream reckons it: from the mean prompt length, rounded down, and, of vLLM, from the
/// output length asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UpstreamSpeeds {
    /// Prompt tokens per second until the last prompt's first token.
    pub input: Option<f64>,
    /// Output tokens per second after it.
    pub output: Option<f64>,
    /// All tokens over the latency.
    pub overall: Option<f64>,
}

/// The part of a batch in which every prompt was decoding: from the last prompt's first token to the
/// first prompt's end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Output tokens per second in it.
    pub output_throughput: f64,
    /// Its length in seconds.
    pub window: f64,
}

impl Figures {
    /// The figures of a batch that was sent at `sent` and whose stream ended at `end`. `seen` are its
    /// frames in their order. `None` when some prompt brought no frame.
    pub(super) fn of(asked: &Asked, sent: Stamp, end: Stamp, seen: &[Seen]) -> Option<Self> {
        let counted = seen.iter().any(|seen| seen.tokens.is_some());
        let begins: Vec<_> = begins(asked.rows, seen).into_iter().collect::<Option<_>>()?;
        let first_begin = begins.iter().min()?;
        let last_begin = begins.iter().max()?;

        let whole = u64::from(asked.rows) * u64::from(asked.output_len);
        let total = if counted { last_counts(asked.rows, seen).iter().sum() } else { whole };
        // In the order of the stream, the frame that completes the batch included.
        let begun = &seen[..=last_begin.1];
        let before: u64 = last_counts(asked.rows, begun).iter().sum();
        let decoded = if asked.only_window { total.saturating_sub(before) } else { total };

        let (upstream_total, upstream_decoded) =
            if asked.assumed_output { (whole, whole) } else { (total, decoded) };

        let latency = end.secs_since(sent);
        let last_ttft = last_begin.0.secs_since(sent);
        let upstream = UpstreamSpeeds {
            input: ratio(asked.upstream_input_tokens as f64, last_ttft),
            output: ratio(upstream_decoded as f64, latency - last_ttft),
            overall: ratio((asked.upstream_input_tokens + upstream_total) as f64, latency),
        };
        let stops = seen.iter().filter(|seen| seen.ended == Some(RowEnd::Stop)).count();
        Some(Self {
            latency,
            last_ttft,
            first_ttft: first_begin.0.secs_since(sent),
            total_input_tokens: asked.input_tokens,
            total_output_tokens: total,
            input_throughput: ratio(asked.input_tokens as f64, last_ttft),
            output_throughput: ratio(decoded as f64, latency - last_ttft),
            overall_throughput: ratio((asked.input_tokens + total) as f64, latency),
            upstream,
            early_stopped: counted.then_some(stops as u32),
            steady: counted.then(|| steady(asked.rows, seen, last_begin.0)).flatten(),
        })
    }
}

fn ratio(tokens: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| tokens / seconds)
}

/// When, and at which frame, each prompt had its first token.
fn begins(rows: u32, seen: &[Seen]) -> Vec<Option<(Stamp, usize)>> {
    let mut begins = vec![None; rows as usize];
    for (place, seen) in seen.iter().enumerate() {
        if seen.tokens != Some(0)
            && let Some(begin) = begins.get_mut(seen.row as usize)
        {
            begin.get_or_insert((seen.at, place));
        }
    }
    begins
}

/// The highest count of each prompt.
fn last_counts(rows: u32, seen: &[Seen]) -> Vec<u64> {
    let mut counts = vec![0; rows as usize];
    for seen in seen {
        if let (Some(count), Some(tokens)) = (counts.get_mut(seen.row as usize), seen.tokens) {
            *count = (*count).max(u64::from(tokens));
        }
    }
    counts
}

/// The window from `start` to the first frame with a finish reason.
fn steady(rows: u32, seen: &[Seen], start: Stamp) -> Option<Steady> {
    let end = seen.iter().find(|seen| seen.ended.is_some())?.at;
    if end <= start {
        return None;
    }
    let tokens = tokens_at(rows, seen, end) - tokens_at(rows, seen, start);
    let window = end.secs_since(start);
    (tokens > 0.0).then(|| Steady { output_throughput: tokens / window, window })
}

/// Tokens of the whole batch at a moment: between two frames of a prompt they are taken to come evenly.
fn tokens_at(rows: u32, seen: &[Seen], at: Stamp) -> f64 {
    let mut around: Vec<Around> = vec![Around::default(); rows as usize];
    for seen in seen {
        let (Some(around), Some(tokens)) = (around.get_mut(seen.row as usize), seen.tokens) else {
            continue;
        };
        if seen.at <= at {
            around.before = Some((seen.at, tokens));
        } else if around.after.is_none() {
            around.after = Some((seen.at, tokens));
        }
    }
    around.iter().map(|around| around.tokens(at)).sum()
}

/// A prompt's frames on both sides of a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Around {
    before: Option<(Stamp, u32)>,
    after: Option<(Stamp, u32)>,
}

impl Around {
    fn tokens(&self, at: Stamp) -> f64 {
        let Some((from, low)) = self.before else { return 0.0 };
        let low = f64::from(low);
        let Some((to, high)) = self.after else { return low };
        low + (f64::from(high) - low) * at.secs_since(from) / to.secs_since(from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ASKED: Asked = Asked {
        rows: 2,
        input_tokens: 64,
        upstream_input_tokens: 62,
        output_len: 8,
        only_window: false,
        assumed_output: false,
    };

    fn seen(ms: u64, row: u32, tokens: u32, ended: Option<RowEnd>) -> Seen {
        Seen { at: Stamp::from_millis(ms), row, tokens: Some(tokens), ended }
    }

    /// Row 0 begins at 0.25 s, row 1 at 0.5 s; row 0 stops at 1 s, row 1 goes on to 2 s.
    fn stream() -> Vec<Seen> {
        vec![
            seen(250, 0, 1, None),
            seen(500, 0, 3, None),
            seen(500, 1, 1, None),
            seen(750, 1, 3, None),
            seen(1000, 0, 5, Some(RowEnd::Stop)),
            seen(1250, 1, 5, None),
            seen(2000, 1, 8, Some(RowEnd::Length)),
        ]
    }

    fn figures(asked: &Asked, seen: &[Seen]) -> Figures {
        Figures::of(asked, Stamp(0), Stamp::from_millis(2500), seen).expect("figures")
    }

    #[test]
    fn every_formula_on_a_stream_that_can_be_reckoned_by_hand() {
        let all = figures(&ASKED, &stream());
        assert_eq!((all.latency, all.last_ttft, all.first_ttft), (2.5, 0.5, 0.25));
        assert_eq!((all.total_input_tokens, all.total_output_tokens), (64, 13));
        assert_eq!(all.input_throughput, Some(64.0 / 0.5));
        assert_eq!(all.output_throughput, Some(13.0 / 2.0));
        assert_eq!(all.overall_throughput, Some((64.0 + 13.0) / 2.5));
        assert_eq!(all.early_stopped, Some(1));
        assert_eq!(all.upstream.input, Some(62.0 / 0.5));
        assert_eq!(all.upstream.output, all.output_throughput);
        assert_eq!(all.upstream.overall, Some((62.0 + 13.0) / 2.5));
        let assumed = figures(&Asked { assumed_output: true, ..ASKED }, &stream());
        assert_eq!(assumed.output_throughput, Some(13.0 / 2.0));
        assert_eq!(assumed.upstream.output, Some(16.0 / 2.0));
        // At 0.5 s rows have 3 and 1; at 1 s row 0 has 5, row 1 is halfway from 3 to 5.
        assert_eq!(all.steady, Some(Steady { output_throughput: 5.0 / 0.5, window: 0.5 }));

        let window = figures(&Asked { only_window: true, ..ASKED }, &stream());
        // 3 and 1 tokens were there when the last prompt had begun.
        assert_eq!(window.output_throughput, Some(9.0 / 2.0));
        assert_eq!(window.steady, all.steady);
    }

    #[test]
    fn without_a_full_batch_there_is_no_steady_window() {
        let one_after_the_other = [
            seen(100, 0, 1, None),
            seen(200, 0, 2, Some(RowEnd::Length)),
            seen(300, 1, 1, None),
            seen(400, 1, 2, Some(RowEnd::Length)),
        ];
        assert_eq!(figures(&ASKED, &one_after_the_other).steady, None);
        let at_once =
            [seen(100, 0, 1, Some(RowEnd::Length)), seen(100, 1, 1, Some(RowEnd::Length))];
        let figures = figures(&ASKED, &at_once);
        assert_eq!((figures.steady, figures.early_stopped), (None, Some(0)));
        assert_eq!(Figures::of(&ASKED, Stamp(0), Stamp(9), &at_once[..1]), None);
    }

    #[test]
    fn a_stream_of_one_moment_has_no_decode_speed() {
        let at_once =
            [seen(100, 0, 1, Some(RowEnd::Length)), seen(100, 1, 1, Some(RowEnd::Length))];
        let end = Stamp::from_millis(100);
        let figures = Figures::of(&ASKED, Stamp(0), end, &at_once).expect("figures");
        assert_eq!((figures.output_throughput, figures.latency), (None, 0.1));
    }

    #[test]
    fn a_route_without_counts_is_taken_at_its_word() {
        let frame = |ms, row| Seen { at: Stamp::from_millis(ms), row, tokens: None, ended: None };
        let seen = [frame(250, 1), frame(500, 0), frame(750, 1)];
        let figures = figures(&ASKED, &seen);
        assert_eq!((figures.last_ttft, figures.total_output_tokens), (0.5, 16));
        assert_eq!(figures.output_throughput, Some(16.0 / 2.0));
        assert_eq!((figures.steady, figures.early_stopped), (None, None));
    }

    proptest! {
        /// Tokens never decrease with time, and end at the total.
        #[test]
        fn interpolation_rises_to_the_total(steps in prop::collection::vec((0u32..3, 1u64..50, 1u32..5), 1..40)) {
            let (mut at, mut counts, mut frames) = (0, [0; 3], Vec::new());
            for (row, wait, tokens) in steps {
                at += wait;
                counts[row as usize] += tokens;
                frames.push(seen(at, row, counts[row as usize], None));
            }
            let mut last = 0.0;
            for ms in 0..=at {
                let now = tokens_at(3, &frames, Stamp::from_millis(ms));
                prop_assert!(now >= last - 1e-9);
                last = now;
            }
            prop_assert!((last - f64::from(counts.iter().sum::<u32>())).abs() < 1e-9);
        }
    }
}
