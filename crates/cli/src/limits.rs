//! How long a request may take, as planned.

use crate::args::LimitArgs;
use serde::Serialize;
use servebench_http::Limits;
use std::time::Duration;

/// How long a request may take, and how often it is tried. `None`: no limit.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LimitPlan {
    /// Longest wait for a connection.
    pub connect_timeout_s: Option<f64>,
    /// Longest wait for the first byte of an answer.
    pub first_byte_timeout_s: Option<f64>,
    /// Longest silence of the server.
    pub idle_timeout_s: Option<f64>,
    /// Longest time from dispatch to the end of a reply.
    pub request_timeout_s: Option<f64>,
    /// How many times a request is sent again when a try ends before one byte of an answer.
    pub retries: u32,
}

impl LimitPlan {
    pub(crate) fn new(args: &LimitArgs) -> Self {
        let limit = |given: Option<f64>, default: Option<Duration>| {
            let default = default.map_or(0.0, |default| default.as_secs_f64());
            Some(given.unwrap_or(default)).filter(|seconds| *seconds > 0.0)
        };
        let Limits { connect, first_byte, idle, total, retries, .. } = Limits::default();
        Self {
            connect_timeout_s: limit(args.connect_timeout, connect),
            first_byte_timeout_s: limit(args.first_byte_timeout, first_byte),
            idle_timeout_s: limit(args.idle_timeout, idle),
            request_timeout_s: limit(args.request_timeout, total),
            retries: args.retries.unwrap_or(retries),
        }
    }

    /// Longest wait for a connection.
    pub(crate) fn connect(&self) -> Option<Duration> {
        self.connect_timeout_s.map(Duration::from_secs_f64)
    }

    /// For requests over warm connections, read by whoever reads by default.
    pub(crate) fn limits(&self) -> Limits {
        Limits {
            connect: self.connect(),
            first_byte: self.first_byte_timeout_s.map(Duration::from_secs_f64),
            idle: self.idle_timeout_s.map(Duration::from_secs_f64),
            total: self.request_timeout_s.map(Duration::from_secs_f64),
            retries: self.retries,
            ..Limits::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_the_default_and_0_is_no_limit() {
        let plan = LimitPlan::new(&LimitArgs::default());
        assert_eq!(plan.limits(), Limits::default());
        let args = LimitArgs {
            connect_timeout: Some(0.0),
            first_byte_timeout: Some(2.5),
            idle_timeout: Some(0.0),
            request_timeout: Some(0.0),
            retries: Some(3),
        };
        let limits = LimitPlan::new(&args).limits();
        assert_eq!((limits.connect, limits.idle, limits.total), (None, None, None));
        assert_eq!((limits.first_byte, limits.retries), (Some(Duration::from_millis(2500)), 3));
    }
}
