//! vLLM's counters, from its `/metrics`: speculative decoding, diffusion, prefix cache.

use servebench_report::vllm::{Diffusion, Speculation};
use std::collections::BTreeMap;

/// What the name of every counter begins with, and what it ends with.
const NAME: (&str, &str) = ("vllm:", "_total");
/// Drafts accepted up to a position, which is a label.
const PER_POSITION: &str = "spec_decode_num_accepted_tokens_per_pos";

/// Counters since the server's start, summed over engines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    /// By their names without `vllm:` and `_total`.
    totals: BTreeMap<String, u64>,
    per_position: BTreeMap<u64, u64>,
}

/// Tokens that were looked up in the prefix cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LookedUp {
    /// All of them.
    pub(crate) tokens: u64,
    /// Those that were there.
    pub(crate) found: u64,
}

impl Counters {
    /// Reads the text of `/metrics`.
    pub(crate) fn read(text: &str) -> Self {
        let mut counters = Self::default();
        for line in text.lines() {
            let Some((name, labels, value)) = line.strip_prefix(NAME.0).and_then(sample) else {
                continue;
            };
            let Some(name) = name.strip_suffix(NAME.1) else { continue };
            if name == PER_POSITION
                && let Some(position) = label(labels, "position").and_then(|at| at.parse().ok())
            {
                let sum: &mut u64 = counters.per_position.entry(position).or_default();
                *sum = sum.saturating_add(value);
            }
            let sum = counters.totals.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(value);
        }
        counters
    }

    /// What was counted of one name since `before`.
    fn since(&self, before: &Self, name: &str) -> u64 {
        let total = |counters: &Self| counters.totals.get(name).copied().unwrap_or(0);
        total(self).saturating_sub(total(before))
    }

    /// Speculative decoding since `before`; `None` if no token was drafted.
    pub(crate) fn speculation(&self, before: &Self) -> Option<Speculation> {
        let drafts = self.since(before, "spec_decode_num_drafts");
        let draft_tokens = self.since(before, "spec_decode_num_draft_tokens");
        if draft_tokens == 0 {
            return None;
        }
        let share = |(position, accepted): (&u64, &u64)| {
            let before = before.per_position.get(position).copied().unwrap_or(0);
            let accepted = accepted.saturating_sub(before) as f64;
            (*position, accepted / (drafts as f64).max(1.0))
        };
        Some(Speculation {
            drafts,
            draft_tokens,
            accepted_tokens: self.since(before, "spec_decode_num_accepted_tokens"),
            per_position: self.per_position.iter().map(share).collect(),
        })
    }

    /// Denoising since `before`; `None` if nothing was denoised.
    pub(crate) fn diffusion(&self, before: &Self) -> Option<Diffusion> {
        let diffusion = Diffusion {
            steps: self.since(before, "diffusion_num_denoising_steps"),
            positions: self.since(before, "diffusion_num_canvas_positions"),
            committed: self.since(before, "diffusion_num_committed_tokens"),
        };
        let Diffusion { steps, positions, committed } = diffusion;
        (steps > 0 && positions > 0 && committed > 0).then_some(diffusion)
    }

    /// Prompt tokens looked up in the prefix cache since `before`; `None` if there were none.
    pub(crate) fn prefix_cache(&self, before: &Self) -> Option<LookedUp> {
        let looked_up = LookedUp {
            tokens: self.since(before, "prefix_cache_queries"),
            found: self.since(before, "prefix_cache_hits"),
        };
        (looked_up.tokens > 0).then_some(looked_up)
    }
}

/// Name, labels and value of a line. Label values may hold anything, in quotes.
fn sample(line: &str) -> Option<(&str, &str, u64)> {
    let end = line.find(['{', ' ', '\t'])?;
    let (name, rest) = line.split_at(end);
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_at(labels_end(rest)?),
        None => ("", rest),
    };
    let value: f64 = rest.trim_start_matches('}').split_whitespace().next()?.parse().ok()?;
    value.is_finite().then_some((name, labels, value as u64))
}

/// Where the brace is that ends the labels.
fn labels_end(text: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'}' if !quoted => return Some(at),
            _ => {}
        }
    }
    None
}

/// The value of a label that holds no escapes.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("{name}=\"");
    let at = labels
        .match_indices(&begin)
        .map(|(at, _)| at)
        .find(|&at| at == 0 || labels[..at].ends_with([',', ' ']))?;
    labels[at + begin.len()..].split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEFORE: &str = "\
# HELP vllm:spec_decode_num_drafts_total Number of drafts.
vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"a model }\"} 10.0
vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 30.0
vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 5
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"0\"} 5
vllm:spec_decode_num_accepted_tokens_created{engine=\"0\"} 1.7e9
";

    const AFTER: &str = "\
vllm:spec_decode_num_drafts_total{engine=\"0\",model_name=\"a model }\"} 20.0
vllm:spec_decode_num_drafts_total{engine=\"1\"} 15.0
vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 105.0
vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 55
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"1\"} 12
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"0\"} 30
";

    fn between(before: &str, after: &str) -> (Counters, Counters) {
        (Counters::read(before), Counters::read(after))
    }

    #[test]
    fn counters_are_summed_over_engines_and_subtracted() {
        let (before, after) = between(BEFORE, AFTER);
        let speculation = after.speculation(&before).unwrap();
        let want = Speculation {
            drafts: 25,
            draft_tokens: 75,
            accepted_tokens: 50,
            per_position: vec![(0, 1.0), (1, 0.48)],
        };
        assert_eq!(speculation, want);
        assert!((speculation.acceptance_length() - 3.0).abs() < 1e-12);
        assert_eq!(before.speculation(&before), None);
        assert_eq!(Counters::read("vllm:num_requests_running 1\n"), Counters::default());
    }

    #[test]
    fn denoising_and_lookups_are_counted() {
        let (before, after) = between(
            "vllm:prefix_cache_queries_total{engine=\"0\"} 100\n\
             vllm:prefix_cache_hits_total{engine=\"0\"} 1\n",
            "vllm:diffusion_num_denoising_steps_total 40.0\n\
             vllm:diffusion_num_canvas_positions_total 1280\n\
             vllm:diffusion_num_committed_tokens_total 256\n\
             vllm:prefix_cache_queries_total{engine=\"0\"} 164\n\
             vllm:prefix_cache_queries_created{engine=\"0\"} 1.7e9\n\
             vllm:external_prefix_cache_queries_total{engine=\"0\"} 9\n\
             vllm:prefix_cache_hits_total{engine=\"0\"} 49\n",
        );
        assert_eq!(
            after.diffusion(&before),
            Some(Diffusion { steps: 40, positions: 1280, committed: 256 })
        );
        assert_eq!(after.diffusion(&after), None);
        assert_eq!(after.prefix_cache(&before), Some(LookedUp { tokens: 64, found: 48 }));
        assert_eq!(after.prefix_cache(&after), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(vllm:spec_decode)?[a-z_]{0,8}(total)?[{}\"\\\\=, 0-9é]{0,20}") {
            drop(Counters::read(&text));
        }
    }
}
