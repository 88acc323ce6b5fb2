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

mod plan;

use crate::SimError;
use crate::clock::millis::from_millis;
pub(crate) use plan::{ArmedRule, CloseAfter, FaultPlan, Length, StatusFault, WireFault};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

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
    /// The n-th, 2n-th, 3n-th … request; with `offset` others of every n.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every: Option<u64>,
    /// Which of every n, counted from 0: the last one if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
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
    /// Takes the request and never answers, as a server behind a half-open connection.
    Silence {},
    /// Ends the connection instead of answering.
    HangUp {
        /// By RST where the connection is a TCP socket.
        #[serde(default)]
        reset: bool,
    },
    /// Hands the response to the connection drop by drop, its head included.
    Drip {
        /// Bytes of a drop.
        #[serde(default = "one")]
        bytes: u32,
        /// Between two drops.
        ms: f64,
    },
    /// Sets header lines of the response, such as a wrong content type.
    Headers {
        /// The lines; those that frame the body are not taken.
        headers: BTreeMap<String, String>,
    },
    /// Puts these bytes into the stream.
    Malformed {
        /// Before which token.
        at_token: u32,
        /// The bytes, an event with broken JSON by default.
        #[serde(default = "default_malformed")]
        text: String,
        /// How often, for a line without an end.
        #[serde(default = "one")]
        repeat: u32,
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

/// Where a reply is cut: at its beginning, after tokens, or after bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct After {
    /// After the event in which the reply reaches this many tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_tokens: Option<u32>,
    /// After exactly this many bytes of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_bytes: Option<u64>,
    /// After exactly this many bytes of the whole response: in the middle of its head, of a chunk, or of a
    /// chunk's size. The truth log has what was handed over, sent or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after_wire_bytes: Option<u64>,
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
fn one() -> u32 {
    1
}

/// Most bytes that a rule puts into a stream.
const MALFORMED_LIMIT: usize = 256 << 20;

/// Header lines that a rule may not set, since they say where the body ends.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

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
    if let Some(offset) = rule.when.offset
        && rule.when.every.is_none_or(|every| offset >= every)
    {
        return Err("`offset` needs an `every` above it".to_owned());
    }
    if rule.when.probability.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
        return Err("`probability` must lie between 0 and 1".to_owned());
    }
    let time = |ms: f64| from_millis(ms).map(|_| ()).map_err(str::to_owned);
    match &rule.action {
        Action::Drip { bytes: 0, .. } => Err("`bytes` must be at least 1".to_owned()),
        Action::Delay { ms }
        | Action::Drip { ms, .. }
        | Action::Close { after_ms: ms, .. }
        | Action::Stall { ms: Some(ms), .. }
        | Action::HoldOpen { ms: Some(ms) } => time(*ms),
        Action::Malformed { text, repeat, .. }
            if text.len().saturating_mul(*repeat as usize) > MALFORMED_LIMIT =>
        {
            Err(format!("`text` and `repeat` make more than {MALFORMED_LIMIT} bytes"))
        }
        Action::Status { code, content_type, headers, .. } => {
            if !(200..600).contains(code) {
                return Err("`code` must lie between 200 and 599".to_owned());
            }
            if !is_header("content-type", content_type) {
                return Err("`content_type` is not a header value".to_owned());
            }
            check_headers(headers)
        }
        Action::Headers { headers } => {
            let framing = |name: &&String| FRAMING.iter().any(|it| name.eq_ignore_ascii_case(it));
            match headers.keys().find(framing) {
                Some(name) => Err(format!("header `{name}` frames the body")),
                None => check_headers(headers),
            }
        }
        Action::Cut(after) | Action::Reset(after) => {
            let After { after_tokens, after_bytes, after_wire_bytes } = after;
            let given = [after_tokens.is_some(), after_bytes.is_some(), after_wire_bytes.is_some()];
            if given.into_iter().filter(|given| *given).count() > 1 {
                return Err(
                    "`after_tokens`, `after_bytes` and `after_wire_bytes` exclude each other"
                        .to_owned(),
                );
            }
            Ok(())
        }
        Action::Ping { every: 0, .. } => Err("`every` must be at least 1".to_owned()),
        _ => Ok(()),
    }
}

fn is_header(name: &str, value: &str) -> bool {
    http::HeaderName::from_bytes(name.as_bytes()).is_ok()
        && http::HeaderValue::from_str(value).is_ok()
}

fn check_headers(headers: &BTreeMap<String, String>) -> Result<(), String> {
    match headers.iter().find(|(name, value)| !is_header(name, value)) {
        Some((name, _)) => Err(format!("header `{name}` is not valid")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn message(json: &str) -> String {
        parse_faults(json).expect_err("refused").to_string()
    }

    #[test]
    fn errors_name_the_rule() {
        let fine = r#"{"action": {"delay": {"ms": 1}}}"#;
        assert_eq!(
            message(&format!(r#"[{fine}, {{"action": {{"cut": {{"after_token": 2}}}}}}]"#)),
            "fault rule 2: unknown field `after_token`, expected one of `after_tokens`, \
             `after_bytes`, `after_wire_bytes`"
        );
        assert!(message(r#"[{"action": {"explode": {}}}]"#).starts_with("fault rule 1: "));
        assert!(
            message(r#"[{"when": {"every": 0}, "action": {"no_done": {}}}]"#).contains("every")
        );
        assert!(message(r#"[{"action": {"status": {"code": 100}}}]"#).contains("code"));
        assert!(message("{}").starts_with("the fault script is not a JSON list"));
    }

    #[test]
    fn every_n_can_begin_elsewhere() {
        let places = |when: &str| {
            let rule = format!(r#"[{{"when": {when}, "action": {{"no_done": {{}}}}}}]"#);
            let rules = parse_faults(&rule).expect("a script");
            let armed: Vec<ArmedRule> = rules.into_iter().map(ArmedRule::new).collect();
            let met = |_: &u64| FaultPlan::draw(&armed, "/generate", true).is_some();
            (0..10).filter(met).collect::<Vec<u64>>()
        };
        assert_eq!(places(r#"{"every": 4}"#), [3, 7]);
        assert_eq!(places(r#"{"every": 4, "offset": 1}"#), [1, 5, 9]);
        for when in [r#"{"offset": 1}"#, r#"{"every": 2, "offset": 2}"#] {
            let rule = format!(r#"[{{"when": {when}, "action": {{"no_done": {{}}}}}}]"#);
            assert!(message(&rule).contains("offset"));
        }
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
