//! The figures of one reply, and the tables that show them.

use servebench_core::Record;
use servebench_metrics::Distribution;

/// What one reply shows of the server's speed. Of a batch, the first prompt's, unless it says else.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// End-to-end latency in seconds by the server's clock; by the client's where the server tells
    /// none.
    pub latency: f64,
    /// Output tokens, by the server's count.
    pub tokens: u32,
    /// Tokens per verification step; 1 without speculative decoding.
    pub accept_length: f64,
    /// From dispatch to the first token, in seconds, if the reply was streamed.
    pub ttft: Option<f64>,
    /// Seconds between tokens, mean and 99th percentile, if the reply was streamed; tokens that came
    /// together share their gap.
    pub itl: Option<(f64, f64)>,
    /// Tokens per second after the first chunk.
    pub decode: Option<f64>,
    /// End-to-end latency by the client's clock, in seconds.
    pub client_latency: Option<f64>,
    /// Prompt tokens by the server's count.
    pub prompt_tokens: Option<u32>,
    /// Of those, found in the server's cache.
    pub cached_tokens: Option<u64>,
    /// Output tokens of the whole batch.
    pub batch_tokens: u32,
}

impl Figures {
    /// The figures of a request, if it brought tokens. `streamed` says whether the times of its
    /// chunks mean something.
    pub fn of(record: &Record, streamed: bool) -> Option<Self> {
        let reply = &record.reply;
        let first: Vec<_> = reply.chunks.iter().filter(|chunk| chunk.choice == 0).collect();
        let begin = first.first()?.at;
        let end = first.last()?.at;
        let counted: u32 = first.iter().filter_map(|chunk| chunk.tokens).sum();
        let batch_tokens = reply.completion_tokens.unwrap_or(counted);
        let alone = reply.chunks.iter().all(|chunk| chunk.choice == 0);
        let tokens = if alone { batch_tokens } else { counted };
        let client_latency = reply.last_line.unwrap_or(end).secs_since(record.dispatched);

        let mut gaps = Vec::new();
        for pair in first.windows(2) {
            let tokens = pair[1].tokens.unwrap_or(1).max(1);
            let gap = pair[1].at.secs_since(pair[0].at) / f64::from(tokens);
            gaps.extend(std::iter::repeat_n(gap, tokens as usize));
        }
        let after_first = tokens.saturating_sub(first.first()?.tokens.unwrap_or(1));
        let decoding = end.secs_since(begin);
        let itl = Distribution::of(&mut gaps).map(|itl| (itl.mean, itl.p99));
        let decode = (decoding > 0.0).then(|| f64::from(after_first) / decoding);
        Some(Self {
            latency: reply.server_latency.map_or(client_latency, f64::from),
            tokens,
            accept_length: reply.rare().accept_length.filter(|length| *length > 0.0).unwrap_or(1.0),
            ttft: streamed.then(|| begin.secs_since(record.dispatched)),
            itl: itl.filter(|_| streamed),
            decode: decode.filter(|_| streamed),
            client_latency: Some(client_latency),
            prompt_tokens: reply.prompt_tokens,
            cached_tokens: reply.cached_tokens,
            batch_tokens,
        })
    }

    /// Output tokens per second of latency.
    pub fn speed(&self) -> f64 {
        if self.latency > 0.0 { f64::from(self.tokens) / self.latency } else { 0.0 }
    }

    /// The Python tool's table.
    pub fn table(&self) -> String {
        boxed(&[
            ("Latency (s)", format!("{:.3}", self.latency)),
            ("Tokens", self.tokens.to_string()),
            ("Acc Length", format!("{:.3}", self.accept_length)),
            ("Speed (token/s)", format!("{:.2}", self.speed())),
        ])
    }

    /// What the client saw, and what the server's cache did.
    pub fn client_table(&self, batch: u32) -> String {
        let ms = |seconds: Option<f64>| {
            seconds.map_or_else(|| "-".into(), |seconds| format!("{:.2}", seconds * 1e3))
        };
        let count = |count: Option<u64>| count.map_or_else(|| "-".into(), |n| n.to_string());
        let mut columns = vec![
            ("TTFT (ms)", ms(self.ttft)),
            ("Mean ITL (ms)", ms(self.itl.map(|(mean, _)| mean))),
            ("P99 ITL (ms)", ms(self.itl.map(|(_, p99)| p99))),
            ("Decode (token/s)", self.decode.map_or_else(|| "-".into(), |d| format!("{d:.2}"))),
            ("E2E (ms)", ms(self.client_latency)),
            ("Prompt", count(self.prompt_tokens.map(u64::from))),
            ("Cached", count(self.cached_tokens)),
        ];
        if batch > 1 {
            let seconds = self.client_latency.filter(|seconds| *seconds > 0.0);
            let speed = seconds.map_or(0.0, |seconds| f64::from(self.batch_tokens) / seconds);
            columns.push(("Batch tokens", self.batch_tokens.to_string()));
            columns.push(("Batch (token/s)", format!("{speed:.2}")));
        }
        boxed(&columns)
    }
}

/// A table of one row, its cells centred.
fn boxed(columns: &[(&str, String)]) -> String {
    let lines = columns.iter().map(|(head, cell)| {
        let width = head.len().max(cell.len());
        ["-".repeat(width + 2), format!(" {head:^width$} "), format!(" {cell:^width$} ")]
    });
    let lines: Vec<_> = lines.collect();
    let line = |at: usize| lines.iter().map(|line| line[at].as_str()).collect::<Vec<_>>();
    let (rule, heads, cells) = (line(0).join("+"), line(1).join("|"), line(2).join("|"));
    format!("+{rule}+\n|{heads}|\n+{rule}+\n|{cells}|\n+{rule}+")
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::Stamp;

    /// Three chunks of the first prompt, one of the second.
    fn record() -> Record {
        let mut record = Record { dispatched: Stamp::from_millis(64), ..Record::default() };
        let reply = &mut record.reply;
        for (ms, tokens, choice) in [(128, 1, 0), (130, 5, 1), (192, 1, 0), (320, 2, 0)] {
            reply.push_chunk(Stamp::from_millis(ms), Some(tokens), choice, "x");
        }
        reply.completion_tokens = Some(9);
        record
    }

    #[test]
    fn figures_are_those_of_the_first_prompt() {
        let figures = Figures::of(&record(), true).expect("tokens");
        assert_eq!((figures.tokens, figures.batch_tokens), (4, 9));
        assert_eq!(figures.ttft, Some(0.064));
        let (mean, p99) = figures.itl.expect("a stream");
        assert!((mean - 0.064).abs() < 1e-9 && (p99 - 0.064).abs() < 1e-9, "{mean} {p99}");
        assert!((figures.decode.expect("a stream") - 3.0 / 0.192).abs() < 1e-9);
        assert_eq!((figures.latency, figures.accept_length), (0.256, 1.0));
        assert!((figures.speed() - 4.0 / 0.256).abs() < 1e-9);
    }

    #[test]
    fn a_whole_reply_has_no_times_of_tokens() {
        let mut record = record();
        record.reply.server_latency = Some(0.25);
        record.reply.rare_mut().accept_length = Some(2.5);
        let figures = Figures::of(&record, false).expect("tokens");
        assert_eq!((figures.ttft, figures.itl, figures.decode), (None, None, None));
        assert_eq!((figures.latency, figures.accept_length), (0.25, 2.5));
        assert_eq!(Figures::of(&Record::default(), true), None);
    }

    #[test]
    fn the_table_is_boxed_and_centred() {
        let figures =
            Figures { latency: 1.5, tokens: 300, accept_length: 1.0, ..Figures::default() };
        let want = "\
+-------------+--------+------------+-----------------+
| Latency (s) | Tokens | Acc Length | Speed (token/s) |
+-------------+--------+------------+-----------------+
|    1.500    |  300   |   1.000    |     200.00      |
+-------------+--------+------------+-----------------+";
        assert_eq!(figures.table(), want);
    }
}
