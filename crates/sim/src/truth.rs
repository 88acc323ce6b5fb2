//! What the server really did, so that a client's error can be computed.

use serde::{Deserialize, Serialize};

/// Tokens handed to the connection together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// When, in nanoseconds since the simulator's start. The connection writes them in the same
    /// turn of its task.
    pub at_ns: u64,
    /// The choice (or the row of a batch) that they belong to.
    pub choice: u32,
    /// How many.
    pub tokens: u32,
}

/// The truth about one generation request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruthRecord {
    /// Place among the requests of this server, from 0.
    pub id: u64,
    /// The client's name for it: the header `X-Request-Id`, else the field `rid`.
    pub request_id: Option<String>,
    /// The path.
    pub path: String,
    /// When the whole request was read, in nanoseconds since the simulator's start.
    pub received_ns: u64,
    /// Prompt tokens, over all rows.
    pub prompt_tokens: u64,
    /// Output tokens that the request was given to produce, over all choices.
    pub output_tokens: u64,
    /// The tokens that were sent, in order.
    pub sent: Vec<Sent>,
    /// When the reply was complete, or given up.
    pub ended_ns: u64,
    /// True if the reply was not sent to its end: the client left, or a fault cut it.
    pub aborted: bool,
}

impl TruthRecord {
    /// The send time of every token of one choice, in nanoseconds since the simulator's start.
    pub fn token_times(&self, choice: u32) -> Vec<u64> {
        let own = self.sent.iter().filter(|sent| sent.choice == choice);
        own.flat_map(|sent| std::iter::repeat_n(sent.at_ns, sent.tokens as usize)).collect()
    }

    /// When the first token was sent.
    pub fn first_token_ns(&self) -> Option<u64> {
        self.sent.first().map(|sent| sent.at_ns)
    }

    /// Notes tokens sent, together with those of the same moment.
    pub(crate) fn push(&mut self, sent: Sent) {
        match self.sent.last_mut() {
            Some(last) if last.at_ns == sent.at_ns && last.choice == sent.choice => {
                last.tokens += sent.tokens;
            }
            _ => self.sent.push(sent),
        }
    }
}

/// The records of the requests that have ended, in the order of their ends, up to a limit.
#[derive(Debug, Default)]
pub(crate) struct TruthLog {
    records: Vec<TruthRecord>,
    entries: usize,
    pub(crate) dropped: u64,
}

impl TruthLog {
    pub(crate) fn push(&mut self, record: TruthRecord, limit: usize) {
        let entries = self.entries + record.sent.len() + 1;
        if entries > limit {
            self.dropped += 1;
        } else {
            self.entries = entries;
            self.records.push(record);
        }
    }

    pub(crate) fn records(&self) -> &[TruthRecord] {
        &self.records
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_and_counts_what_it_leaves_out() {
        let mut record = TruthRecord::default();
        for at_ns in [5, 5, 9] {
            record.push(Sent { at_ns, choice: 0, tokens: 2 });
        }
        assert_eq!(record.token_times(0), [5, 5, 5, 5, 9, 9]);
        assert_eq!(record.sent.len(), 2);
        let mut log = TruthLog::default();
        for _ in 0..4 {
            log.push(record.clone(), 8);
        }
        assert_eq!((log.records().len(), log.dropped), (2, 2));
    }
}
