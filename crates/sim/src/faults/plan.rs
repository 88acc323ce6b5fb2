//! What the rules do to one request.

use super::{Action, After, FaultRule};
use crate::clock::millis::from_millis;
use crate::random;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A rule and the requests it has seen.
#[derive(Debug)]
pub(crate) struct ArmedRule {
    rule: FaultRule,
    seen: AtomicU64,
}

impl ArmedRule {
    pub(crate) fn new(rule: FaultRule) -> Self {
        Self { rule, seen: AtomicU64::new(0) }
    }

    fn matches(&self, path: &str, generates: bool) -> bool {
        let when = &self.rule.when;
        if !when.path.as_deref().map_or(generates, |wanted| wanted == path) {
            return false;
        }
        let place = self.seen.fetch_add(1, Ordering::Relaxed);
        when.index.as_ref().is_none_or(|places| places.contains(&place))
            && when.every.is_none_or(|every| place % every == when.offset.unwrap_or(every - 1))
            && when.probability.is_none_or(|share| random::unit(when.seed, 0, place) < share)
    }
}

/// How long something lasts; `None` is for ever.
pub(crate) type Length = Option<Duration>;

/// How an idle connection is closed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CloseAfter {
    pub(crate) delay: Duration,
    pub(crate) reset: bool,
    pub(crate) on_next_byte: bool,
}

/// What happens to the bytes of a response once they are the connection's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WireFault {
    /// How many of them are written, and whether the connection then ends by RST.
    pub(crate) cut: Option<(u64, bool)>,
    /// How many are written at a time, and how long after those before them.
    pub(crate) drip: Option<(usize, Duration)>,
}

/// What the rules do to one request.
#[derive(Debug, Default)]
pub(crate) struct FaultPlan {
    pub(crate) delay: Duration,
    pub(crate) status: Option<StatusFault>,
    /// Whether there is never an answer.
    pub(crate) silence: bool,
    /// Whether the connection ends instead, and whether by RST.
    pub(crate) hang_up: Option<bool>,
    /// Where the reply ends, and whether by RST.
    pub(crate) cut: Option<(After, bool)>,
    /// What happens below the response.
    pub(crate) wire: WireFault,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) malformed: Option<(u64, String)>,
    pub(crate) stall: Option<(u64, Length)>,
    /// Where, the event, and whether `[DONE]` follows.
    pub(crate) error: Option<(u64, String, bool)>,
    pub(crate) no_done: bool,
    pub(crate) hold: Option<Length>,
    pub(crate) duplicate: Option<u64>,
    pub(crate) ping: Option<(u64, String)>,
    pub(crate) close: Option<CloseAfter>,
}

#[derive(Debug)]
pub(crate) struct StatusFault {
    pub(crate) code: u16,
    pub(crate) body: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl FaultPlan {
    /// What `rules` do to the next request for `path`; `None` if nothing.
    pub(crate) fn draw(rules: &[ArmedRule], path: &str, generates: bool) -> Option<Box<Self>> {
        let mut plan: Option<Box<Self>> = None;
        // Every rule counts every request, so all are asked.
        for armed in rules.iter().filter(|armed| armed.matches(path, generates)) {
            plan.get_or_insert_default().add(&armed.rule.action);
        }
        plan
    }

    fn cut(&mut self, after: After, reset: bool) {
        match after.after_wire_bytes {
            Some(bytes) => {
                self.wire.cut.get_or_insert((bytes, reset));
            }
            None => {
                self.cut.get_or_insert((after, reset));
            }
        }
    }

    fn add(&mut self, action: &Action) {
        let time = |ms: f64| from_millis(ms).unwrap_or_default();
        match action {
            Action::Delay { ms } => {
                if self.delay.is_zero() {
                    self.delay = time(*ms);
                }
            }
            Action::Status { code, body, content_type, headers } => {
                self.status.get_or_insert_with(|| StatusFault {
                    code: *code,
                    body: body.clone(),
                    headers: std::iter::once(("content-type".to_owned(), content_type.clone()))
                        .chain(headers.clone())
                        .collect(),
                });
            }
            Action::Silence {} => self.silence = true,
            Action::HangUp { reset } => {
                self.hang_up.get_or_insert(*reset);
            }
            Action::Cut(after) => self.cut(*after, false),
            Action::Reset(after) => self.cut(*after, true),
            Action::Drip { bytes, ms } => {
                self.wire.drip.get_or_insert((*bytes as usize, time(*ms)));
            }
            Action::Headers { headers } => {
                self.headers.extend(headers.clone());
            }
            Action::Malformed { at_token, text, repeat } => {
                self.malformed
                    .get_or_insert_with(|| (u64::from(*at_token), text.repeat(*repeat as usize)));
            }
            Action::Stall { at_token, ms } => {
                self.stall.get_or_insert((u64::from(*at_token), ms.map(time)));
            }
            Action::Error { at_token, message, code, done } => {
                self.error.get_or_insert_with(|| {
                    let error = serde_json::json!({"error": {"message": message,
                        "type": "InternalServerError", "code": code, "retryable": false}});
                    (u64::from(*at_token), format!("data: {error}\n\n"), *done)
                });
            }
            Action::NoDone {} => self.no_done = true,
            Action::HoldOpen { ms } => {
                self.hold.get_or_insert(ms.map(time));
            }
            Action::Duplicate { at_token } => {
                self.duplicate.get_or_insert(u64::from(*at_token));
            }
            Action::Ping { every, text } => {
                self.ping.get_or_insert_with(|| (u64::from(*every), text.clone()));
            }
            Action::Close { after_ms, reset, on_next_byte } => {
                self.close.get_or_insert(CloseAfter {
                    delay: time(*after_ms),
                    reset: *reset,
                    on_next_byte: *on_next_byte,
                });
            }
        }
    }
}
