//! The profiler's state machine: nothing is profiled, every rule is kept.

use crate::trace::TraceOrder;
use crate::wire::ApiError;
use serde_json::{Map, Value};

/// Whether a profile runs, and until when.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    running: Option<Running>,
    /// Profiles started.
    pub(crate) started: u64,
    /// What is to be written when it ends.
    trace: Option<TraceOrder>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    /// The forward step after which it ends by itself.
    until: Option<u64>,
}

/// The fields of a start request that the state machine needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StartRequest {
    start_step: Option<u64>,
    num_steps: Option<u64>,
    by_stage: bool,
    merge: bool,
    folder: Option<String>,
    id: Option<String>,
    prefix: Option<String>,
}

impl StartRequest {
    /// Reads the optional JSON body with the server's lax types: numeric strings and integral
    /// floats are integers, `"true"` is a boolean, unknown keys are ignored (status 422 else).
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        if body.trim_ascii().is_empty() {
            return Ok(Self::default());
        }
        let fields: Map<String, Value> = serde_json::from_slice(body)
            .map_err(|error| ApiError::new(422, format!("profile request: {error}")))?;
        for name in ["output_dir", "profile_id", "profile_prefix"] {
            check(&fields, name, |value| value.is_null() || value.is_string())?;
        }
        for name in ["activities", "profile_stages"] {
            check(&fields, name, is_names)?;
        }
        for name in ["with_stack", "record_shapes"] {
            check(&fields, name, |value| value.is_null() || boolean(value).is_some())?;
        }
        for name in ["profile_by_stage", "merge_profiles", "detailed_annotations"] {
            check(&fields, name, |value| boolean(value).is_some())?;
        }
        for name in ["start_step", "num_steps"] {
            check(&fields, name, |value| value.is_null() || integer(value).is_some())?;
        }
        // 0 means the same as nothing; a negative number can only mean that too.
        let positive = |name| {
            let value = integer(fields.get(name)?)?;
            u64::try_from(value).ok().filter(|value| *value > 0)
        };
        let by_stage = fields.get("profile_by_stage").and_then(boolean).unwrap_or(false);
        let (start_step, num_steps) = (positive("start_step"), positive("num_steps"));
        if by_stage && num_steps.is_none() {
            // The real scheduler does not survive this.
            return Err(ApiError::bad_request("`profile_by_stage` needs `num_steps`"));
        }
        let text = |name| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            start_step,
            num_steps,
            by_stage,
            merge: fields.get("merge_profiles").and_then(boolean).unwrap_or(false),
            folder: text("output_dir"),
            id: text("profile_id"),
            prefix: text("profile_prefix"),
        })
    }
}

fn check(
    fields: &Map<String, Value>,
    name: &str,
    valid: impl Fn(&Value) -> bool,
) -> Result<(), ApiError> {
    match fields.get(name) {
        Some(value) if !valid(value) => {
            Err(ApiError::new(422, format!("profile request: bad value for `{name}`: {value}")))
        }
        _ => Ok(()),
    }
}

fn is_names(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(names) => names.iter().all(Value::is_string),
        _ => false,
    }
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < 9e15)
                .map(|float| float as i64)
        }),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn boolean(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(value) => Some(*value),
        Value::Number(number) => match number.as_f64() {
            Some(0.0) => Some(false),
            Some(1.0) => Some(true),
            _ => None,
        },
        Value::String(text) => match text.to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" | "t" | "y" => Some(true),
            "false" | "0" | "no" | "off" | "f" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

impl Profile {
    /// Whether a profile runs when `step` forward steps have been done.
    pub(crate) fn is_running(&mut self, step: u64) -> bool {
        if self.running.and_then(|running| running.until).is_some_and(|until| step >= until) {
            self.running = None;
        }
        self.running.is_some()
    }

    /// Starts a profile, or refuses (status 500) while one runs.
    pub(crate) fn start(&mut self, step: u64, request: &StartRequest) -> Result<(), ApiError> {
        if self.is_running(step) {
            return Err(ApiError::new(500, "profiling is already in progress; stop it first"));
        }
        let until = request.num_steps.map(|steps| match request.start_step {
            Some(start) => start.max(step + 1).saturating_add(steps),
            // By stage, as many prefill and as many decode batches are captured.
            None if request.by_stage => step.saturating_add(steps.saturating_mul(2)),
            None => step.saturating_add(steps).saturating_add(1),
        });
        self.running = Some(Running { until });
        self.started += 1;
        Ok(())
    }

    /// What is to be written when the profile that was just started at `step` ends; `id` is its name
    /// if it was given none.
    pub(crate) fn order_trace(&mut self, step: u64, request: StartRequest, id: String) {
        let count = |steps: u64| usize::try_from(steps).unwrap_or(usize::MAX);
        let start = request.start_step.unwrap_or(0);
        self.trace = Some(TraceOrder {
            folder: request.folder,
            prefix: request.prefix,
            id: Some(request.id.unwrap_or(id)),
            by_stage: request.by_stage,
            merge: request.merge,
            skip: count(start.saturating_sub(step + 1)),
            steps: request.num_steps.map(count),
        });
    }

    /// The trace of a profile that has ended, once.
    pub(crate) fn due_trace(&mut self, step: u64) -> Option<TraceOrder> {
        if self.is_running(step) { None } else { self.trace.take() }
    }

    /// Stops the profile, or refuses (status 500) when none runs.
    pub(crate) fn stop(&mut self, step: u64) -> Result<(), ApiError> {
        if !self.is_running(step) {
            return Err(ApiError::new(500, "profiling is not in progress; start it first"));
        }
        self.running = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> Result<StartRequest, u16> {
        StartRequest::parse(json.as_bytes()).map_err(|error| error.status)
    }

    #[test]
    fn types_are_lax_but_not_everything_passes() {
        let five = StartRequest { num_steps: Some(5), ..StartRequest::default() };
        for json in [r#"{"num_steps": 5}"#, r#"{"num_steps": "5"}"#, r#"{"num_steps": 5.0}"#] {
            assert_eq!(parse(json), Ok(five.clone()), "{json}");
        }
        let none = StartRequest::default();
        for json in [
            "",
            "{}",
            r#"{"num_steps": 0}"#,
            r#"{"num_steps": null, "unknown": 1}"#,
            r#"{"profile_by_stage": "false", "activities": ["CPU"], "with_stack": null}"#,
        ] {
            assert_eq!(parse(json), Ok(none.clone()), "{json}");
        }
        for json in [
            r#"{"num_steps": 1.5}"#,
            r#"{"num_steps": "x"}"#,
            r#"{"activities": "CPU"}"#,
            r#"{"profile_by_stage": null}"#,
            r#"{"merge_profiles": null}"#,
            "[]",
            "{",
        ] {
            assert_eq!(parse(json), Err(422), "{json}");
        }
        assert_eq!(parse(r#"{"profile_by_stage": true}"#), Err(400));
    }

    #[test]
    fn a_profile_ends_by_itself_or_is_stopped() {
        let mut profile = Profile::default();
        assert_eq!(profile.stop(0).expect_err("none runs").status, 500);
        profile.start(0, &StartRequest::default()).expect("starts");
        assert_eq!(profile.start(9, &StartRequest::default()).expect_err("runs").status, 500);
        profile.stop(1_000_000).expect("stops");

        let three = StartRequest { num_steps: Some(3), ..StartRequest::default() };
        profile.start(10, &three).expect("starts");
        assert!(profile.is_running(13));
        assert!(!profile.is_running(14));
        profile.start(14, &StartRequest { start_step: Some(20), ..three }).expect("starts");
        assert!(profile.is_running(22));
        assert!(profile.stop(23).is_err());
        assert_eq!(profile.started, 3);
    }
}
