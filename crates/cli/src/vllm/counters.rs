//! vLLM's counters of speculative decoding, from its `/metrics`.

use servebench_report::vllm::Speculation;
use std::collections::BTreeMap;

/// What the name of every counter begins with.
const BEGIN: &str = "vllm:spec_decode";

/// Counters since the server's start, summed over engines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counters {
    drafts: u64,
    draft_tokens: u64,
    accepted: u64,
    per_position: BTreeMap<u64, u64>,
}

impl Counters {
    /// Reads the text of `/metrics`; `None` if it has no such counter.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut counters = Self::default();
        let mut found = false;
        for line in text.lines().filter(|line| line.starts_with(BEGIN)) {
            let Some((name, labels, value)) = sample(line) else { continue };
            if !name.ends_with("_total") {
                continue;
            }
            found = true;
            if name.contains("num_drafts") {
                counters.drafts += value;
            } else if name.contains("num_draft_tokens") {
                counters.draft_tokens += value;
            } else if name.contains("num_accepted_tokens_per_pos") {
                if let Some(position) = label(labels, "position").and_then(|at| at.parse().ok()) {
                    *counters.per_position.entry(position).or_default() += value;
                }
            } else if name.contains("num_accepted_tokens") {
                counters.accepted += value;
            }
        }
        found.then_some(counters)
    }

    /// What was counted since `before`; `None` if no token was drafted.
    pub(crate) fn since(&self, before: &Self) -> Option<Speculation> {
        let drafts = self.drafts.saturating_sub(before.drafts);
        let draft_tokens = self.draft_tokens.saturating_sub(before.draft_tokens);
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
            accepted_tokens: self.accepted.saturating_sub(before.accepted),
            per_position: self.per_position.iter().map(share).collect(),
        })
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

    #[test]
    fn counters_are_summed_over_engines_and_subtracted() {
        let (before, after) = (Counters::read(BEFORE).unwrap(), Counters::read(AFTER).unwrap());
        let speculation = after.since(&before).unwrap();
        let want = Speculation {
            drafts: 25,
            draft_tokens: 75,
            accepted_tokens: 50,
            per_position: vec![(0, 1.0), (1, 0.48)],
        };
        assert_eq!(speculation, want);
        assert!((speculation.acceptance_length() - 3.0).abs() < 1e-12);
        assert_eq!(before.since(&before), None);
        assert_eq!(Counters::read("vllm:num_requests_running 1\n"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(vllm:spec_decode)?[a-z_]{0,8}(total)?[{}\"\\\\=, 0-9é]{0,20}") {
            drop(Counters::read(&text));
        }
    }
}
