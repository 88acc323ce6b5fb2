//! What one request received, for a reader: when, which bytes, and what was made of them.

use servebench_core::{Reply, Stamp};
use servebench_http::{Ended, Event};
use std::fmt::Write;
use std::time::Duration;

/// Most bytes of one read that are shown.
const BYTES: usize = 4096;

/// The story of one request.
#[derive(Debug, Default)]
pub(super) struct Story {
    lines: String,
    began: Option<Stamp>,
    before: Reply,
}

impl Story {
    /// Takes an event, after which the reply was this.
    pub(super) fn take(&mut self, event: &Event<'_>, reply: &Reply) {
        let line = self.event(event);
        self.lines.push_str(&line);
        self.lines.push('\n');
        for change in changes(&self.before, reply) {
            // Writing to a string cannot fail.
            let _ = writeln!(self.lines, "{:>16}→ {change}", "");
        }
        self.before = reply.clone();
    }

    /// The story, if there was anything to tell.
    pub(super) fn told(self) -> Option<String> {
        (!self.lines.is_empty()).then_some(self.lines)
    }

    fn event(&mut self, event: &Event<'_>) -> String {
        match event {
            Event::Began { at, target, .. } => {
                self.began = Some(*at);
                let target = target.map(|target| format!(", to server {target}"));
                let seconds = at.as_secs_f64();
                self.at(
                    *at,
                    &format!("began {seconds:.6} s into the run{}", target.unwrap_or_default()),
                )
            }
            Event::Opened { took, tls } => {
                let tls = tls.map(|tls| format!(", {} of it TLS", ms(tls)));
                later(&format!("connecting took {}{}", ms(*took), tls.unwrap_or_default()))
            }
            Event::Again { failure, .. } => later(&format!("sent once more, after: {failure}")),
            Event::Head { at, head } => {
                let more = [
                    ("location", &head.location),
                    ("content-encoding", &head.encoding),
                    ("metadata", &head.metadata),
                ];
                let told = |(name, value): (_, &Option<String>)| {
                    Some(format!("{name}: {}", value.as_ref()?))
                };
                let mut facts = vec![format!("head: status {}", head.status)];
                facts.extend(more.into_iter().filter_map(told));
                self.at(*at, &facts.join(", "))
            }
            Event::Data { receipt, bytes } => {
                let bound = match receipt.after {
                    Some(after) if after != receipt.at => {
                        format!(" (not before {})", self.since(after))
                    }
                    Some(_) => String::new(),
                    None => " (time of the read)".to_owned(),
                };
                let shown = bytes.get(..BYTES).unwrap_or(bytes);
                let rest = match bytes.len() - shown.len() {
                    0 => String::new(),
                    rest => format!(" and {rest} more"),
                };
                let count = bytes.len();
                let text = shown.escape_ascii();
                self.at(receipt.at, &format!("{count} bytes{bound}: {text}{rest}"))
            }
            Event::Over { at, ended, sent, .. } => {
                let how = match ended.as_ref() {
                    Ended::Complete => "the response ended as HTTP says it should".to_owned(),
                    Ended::Early => "enough was received".to_owned(),
                    Ended::Broken(failure) => format!("broken: {failure}"),
                    Ended::NoAnswer(failure) => format!("no answer: {failure}"),
                };
                let sent = sent.map(|sent| format!("; sent at {}", self.since(sent)));
                self.at(*at, &format!("{how}{}", sent.unwrap_or_default()))
            }
            other => later(&format!("{other:?}")),
        }
    }

    fn since(&self, at: Stamp) -> String {
        let began = self.began.unwrap_or_default();
        if at < began { format!("-{}", ms(began - at)) } else { ms(at - began) }
    }

    fn at(&self, at: Stamp, what: &str) -> String {
        format!("{:>14}  {what}", self.since(at))
    }
}

fn later(what: &str) -> String {
    format!("{:>14}  {what}", "")
}

fn ms(time: Duration) -> String {
    format!("{:.6} ms", time.as_secs_f64() * 1e3)
}

/// What came to be known from one reply to the next.
fn changes(before: &Reply, now: &Reply) -> Vec<String> {
    let mut changes = Vec::new();
    for chunk in now.chunks.iter().skip(before.chunks.len()) {
        let tokens = match chunk.tokens {
            Some(1) => "1 token".to_owned(),
            Some(tokens) => format!("{tokens} tokens"),
            None => "tokens that nobody counted".to_owned(),
        };
        let choice =
            if chunk.choice > 0 { format!(", choice {}", chunk.choice) } else { String::new() };
        changes.push(format!("chunk with {tokens}{choice}"));
    }
    if now.text != before.text {
        match now.text.strip_prefix(before.text.as_str()) {
            Some(new) => changes.push(format!("text {new:?}")),
            None => changes.push(format!("the text is now {:?}", now.text)),
        }
    }
    let facts = [
        ("finish reason", told(before.finish_reason.as_ref()), told(now.finish_reason.as_ref())),
        ("prompt tokens", told(before.prompt_tokens.as_ref()), told(now.prompt_tokens.as_ref())),
        (
            "completion tokens",
            told(before.completion_tokens.as_ref()),
            told(now.completion_tokens.as_ref()),
        ),
        ("cached tokens", told(before.cached_tokens.as_ref()), told(now.cached_tokens.as_ref())),
        ("failure", told(before.failure.as_ref()), told(now.failure.as_ref())),
    ];
    let new = facts.into_iter().filter(|(_, before, now)| before != now);
    changes.extend(new.filter_map(|(name, _, now)| Some(format!("{name}: {}", now?))));
    changes
}

fn told<T: ToString>(fact: Option<&T>) -> Option<String> {
    fact.map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use servebench_core::{Failure, FailureKind};
    use servebench_http::{Head, Receipt};
    use std::borrow::Cow;

    #[test]
    fn a_story_tells_when_what_came_and_what_it_meant() {
        let (ms, mut story) = (Stamp::from_millis, Story::default());
        let (mut reply, at) = (Reply::default(), ms(1000));
        story.take(&Event::Began { at, target: Some(1), keep_pieces: false }, &reply);
        let head = Head { status: 200, ..Head::default() };
        story.take(&Event::Head { at: ms(1020), head: Cow::Owned(head) }, &reply);
        let receipt = Receipt { at: ms(1030), after: Some(ms(1025)), is_told: true };
        reply.push_chunk(receipt.at, Some(2), 0, "ab");
        story.take(&Event::Data { receipt, bytes: b"data: {}\n" }, &reply);
        let failure = Failure::new(FailureKind::Reset, "gone");
        reply.fail(failure.clone());
        let ended = Cow::Owned(Ended::Broken(failure));
        story.take(&Event::Over { at: ms(1040), ended, sent: Some(ms(1001)), lag: None }, &reply);
        let told = story.told().unwrap_or_default();
        for line in [
            "   0.000000 ms  began 1.000000 s into the run, to server 1",
            "  20.000000 ms  head: status 200",
            "  30.000000 ms  9 bytes (not before 25.000000 ms): data: {}\\n",
            "→ chunk with 2 tokens",
            "→ text \"ab\"",
            "  40.000000 ms  broken: reset: gone; sent at 1.000000 ms",
            "→ failure: reset: gone",
        ] {
            assert!(told.contains(line), "no `{line}` in\n{told}");
        }
    }
}
