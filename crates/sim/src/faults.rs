//! The fault script: which requests go wrong, and how.
//!
//! A script is a JSON list of rules. Each rule has a `when` (left out: every generation request)
//! and an `action`:
//!
//! ```json
//! [
//!   {"when": {"every": 5}, "action": {"status": {"code": 503, "headers": {"Retry-After": "1"}}}},
//!   {"when": {"index": [0, 3], "path": "/generate"}, "action": {"cut": {"after_tokens": 2}}},
//!   {"when": {"probability": 0.01}, "action": {"stall": {"at_token": 10, "ms": 500}}}
//! ]
//! ```
//!
//! All rules that match a request act on it together; of several of one kind the first wins.
//! Token numbers count from 0 over all choices of a reply: `at_token: 2` acts when two tokens have
//! been sent. In a reply that is not streamed, a cut after tokens is one after as many bytes, and
//! the actions that need events do nothing.

use crate::clock::millis::from_millis;
use crate::{SimError, random};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One line of a fault script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    /// Which requests it acts on.
    #[serde(default)]
    pub when: When,
    /// What it does to them.
    pub action: Action,
}

/// Which requests a rule acts on: those that meet every condition given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The exact path; without one, every endpoint that generates or embeds. The other conditions
    /// count the requests that pass this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The places of the requests, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<Vec<u64>>,
    /// The n-th, 2n-th, 3n-th … request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// The share of requests, drawn from `seed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Seeds the draws.
    pub seed: u64,
}

/// What a rule does. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    /// Waits before the response head. Fixed token times run on meanwhile.
    Delay {
        /// For how long.
        ms: f64,
    },
    /// Answers with this status instead.
    Status {
        /// 200 to 599.
        code: u16,
        /// The body, empty by default.
        #[serde(default)]
        body: String,
        /// Its type.
        #[serde(default = "default_content_type")]
        content_type: String,
        /// Further headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// Ends the connection in the middle of the reply, by FIN.
    Cut(After),
    /// Ends the connection in the middle of the reply, by RST where the connection is a TCP
    /// socket.
    Reset(After),
    /// Puts these bytes into the stream.
    Malformed {
        /// Before which token.
        at_token: u32,
        /// The bytes, an event with broken JSON by default.
        #[serde(default = "default_malformed")]
        text: String,
    },
    /// Goes silent.
    Stall {
        /// Before which token.
        at_token: u32,
        /// For how long; for ever if left out.
        #[serde(default)]
        ms: Option<f64>,
    },
    /// Puts an error object into the stream and ends it.
    Error {
        /// Before which token.
        at_token: u32,
        /// The message.
        #[serde(default = "default_message")]
        message: String,
        /// The code.
        #[serde(default = "default_code")]
        code: u16,
        /// Whether `[DONE]` follows.
        #[serde(default = "yes")]
        done: bool,
    },
    /// Ends the stream without `[DONE]`.
    NoDone {},
    /// Keeps the response open after `[DONE]`.
    HoldOpen {
        /// For how long; for ever if left out.
        #[serde(default)]
        ms: Option<f64>,
    },
    /// Sends one event twice.
    Duplicate {
        /// The event that begins with this token.
        at_token: u32,
    },
    /// Puts comment lines between events.
    Ping {
        /// Before each event that begins with a multiple of this many tokens.
        every: u32,
        /// The comment, with its blank line.
        #[serde(default = "default_ping")]
        text: String,
    },
    /// Closes the kept-alive connection after a complete reply, without saying so in the reply.
    Close {
        /// How long after the reply.
        #[serde(default)]
        after_ms: f64,
        /// By RST instead of FIN.
        #[serde(default)]
        reset: bool,
        /// Not after a time, but when the next request's first bytes come.
        #[serde(default)]
        on_next_byte: bool,
    },
}

/// Where a reply is cut: at its beginning, after tokens, or after bytes of the body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct After {
    /// After the event in which the reply reaches this many tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_tokens: Option<u32>,
    /// After exactly this many bytes of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<u64>,
}

fn default_content_type() -> String {
    "application/json".to_owned()
}
fn default_malformed() -> String {
    "data: {\"broken\": \n\n".to_owned()
}
fn default_message() -> String {
    "injected error".to_owned()
}
fn default_code() -> u16 {
    500
}
fn default_ping() -> String {
    ": ping\n\n".to_owned()
}
fn yes() -> bool {
    true
}

/// Reads a fault script; an error names the rule by its number.
pub fn parse_faults(json: &str) -> Result<Vec<FaultRule>, SimError> {
    let values: Vec<Value> = serde_json::from_str(json)
        .map_err(|error| SimError::Script { message: error.to_string() })?;
    let rules = typed_rules(values)?;
    check_rules(&rules)?;
    Ok(rules)
}

/// For `SimConfig`: as [`parse_faults`], within a larger document.
pub(crate) fn deserialize_rules<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<FaultRule>, D::Error> {
    typed_rules(Vec::<Value>::deserialize(from)?).map_err(D::Error::custom)
}

fn typed_rules(values: Vec<Value>) -> Result<Vec<FaultRule>, SimError> {
    let rule = |(place, value)| {
        serde_json::from_value(value).map_err(|error: serde_json::Error| SimError::Rule {
            rule: place + 1,
            message: error.to_string(),
        })
    };
    values.into_iter().enumerate().map(rule).collect()
}

/// Checks the values that the types let through.
pub(crate) fn check_rules(rules: &[FaultRule]) -> Result<(), SimError> {
    for (place, rule) in rules.iter().enumerate() {
        check_rule(rule).map_err(|message| SimError::Rule { rule: place + 1, message })?;
    }
    Ok(())
}

fn check_rule(rule: &FaultRule) -> Result<(), String> {
    if rule.when.every == Some(0) {
        return Err("`every` must be at least 1".to_owned());
    }
    if rule.when.probability.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return Err("`probability` must lie between 0 and 1".to_owned());
    }
    let time = |ms: f64| from_millis(ms).map(|_| ()).map_err(str::to_owned);
    match &rule.action {
        Action::Delay { ms }
        | Action::Close { after_ms: ms, .. }
        | Action::Stall { ms: Some(ms), .. }
        | Action::HoldOpen { ms: Some(ms) } => time(*ms),
        Action::Status { code, content_type, headers, .. } => {
            if !(200..600).contains(code) {
                return Err("`code` must lie between 200 and 599".to_owned());
            }
            let bad = |name: &str, value: &str| {
                http::HeaderName::from_bytes(name.as_bytes()).is_err()
                    || http::HeaderValue::from_str(value).is_err()
            };
            if bad("content-type", content_type) {
                return Err("`content_type` is not a header value".to_owned());
            }
            match headers.iter().find(|(name, value)| bad(name, value)) {
                Some((name, _)) => Err(format!("header `{name}` is not valid")),
                None => Ok(()),
            }
        }
        Action::Cut(after) | Action::Reset(after) => {
            if after.after_tokens.is_some() && after.after_bytes.is_some() {
                return Err("`after_tokens` and `after_bytes` exclude each other".to_owned());
            }
            Ok(())
        }
        Action::Ping { every: 0, .. } => Err("`every` must be at least 1".to_owned()),
        _ => Ok(()),
    }
}

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
            && when.every.is_none_or(|every| (place + 1).is_multiple_of(every))
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

/// What the rules do to one request.
#[derive(Debug, Default)]
pub(crate) struct FaultPlan {
    pub(crate) delay: Duration,
    pub(crate) status: Option<StatusFault>,
    /// Where the reply ends, and whether by RST.
    pub(crate) cut: Option<(After, bool)>,
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
            Action::Cut(after) => {
                self.cut.get_or_insert((*after, false));
            }
            Action::Reset(after) => {
                self.cut.get_or_insert((*after, true));
            }
            Action::Malformed { at_token, text } => {
                self.malformed.get_or_insert_with(|| (u64::from(*at_token), text.clone()));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(json: &str) -> String {
        parse_faults(json).expect_err("refused").to_string()
    }

    #[test]
    fn errors_name_the_rule() {
        let fine = r#"{"action": {"delay": {"ms": 1}}}"#;
        assert_eq!(
            message(&format!(r#"[{fine}, {{"action": {{"cut": {{"after_token": 2}}}}}}]"#)),
            "fault rule 2: unknown field `after_token`, expected `after_tokens` or `after_bytes`"
        );
        assert!(message(r#"[{"action": {"explode": {}}}]"#).starts_with("fault rule 1: "));
        assert!(
            message(r#"[{"when": {"every": 0}, "action": {"no_done": {}}}]"#).contains("every")
        );
        assert!(message(r#"[{"action": {"status": {"code": 100}}}]"#).contains("code"));
        assert!(message("{}").starts_with("the fault script is not a JSON list"));
    }

    #[test]
    fn conditions_count_the_requests_of_their_path() {
        let rules = parse_faults(
            r#"[{"when": {"every": 2, "path": "/generate"}, "action": {"no_done": {}}},
                {"when": {"index": [1]}, "action": {"delay": {"ms": 2.5}}}]"#,
        )
        .expect("a script");
        let armed: Vec<ArmedRule> = rules.into_iter().map(ArmedRule::new).collect();
        let draw = |path: &str, generates| {
            FaultPlan::draw(&armed, path, generates).map(|plan| (plan.no_done, plan.delay))
        };
        assert_eq!(draw("/health", false), None);
        assert_eq!(draw("/generate", true), None);
        let both = (true, Duration::from_micros(2500));
        assert_eq!(draw("/generate", true), Some(both));
        assert_eq!(draw("/v1/completions", true), None);
        assert_eq!(draw("/generate", true), None);
        assert_eq!(draw("/generate", true), Some((true, Duration::ZERO)));
    }

    #[test]
    fn probability_is_a_share() {
        let rules = parse_faults(
            r#"[{"when": {"probability": 0.25, "seed": 3}, "action": {"no_done": {}}}]"#,
        )
        .expect("a script");
        let armed: Vec<ArmedRule> = rules.into_iter().map(ArmedRule::new).collect();
        let hits =
            (0..4000).filter(|_| FaultPlan::draw(&armed, "/generate", true).is_some()).count();
        assert!((900..1100).contains(&hits), "{hits}");
    }
}
