//! Cache flushes and the profiler.

use super::{Call, SimBody, reply};
use crate::profile::StartRequest;
use crate::state::State;
use crate::wire::ApiError;
use http::Response;
use std::sync::atomic::Ordering::AcqRel;
use std::sync::atomic::Ordering::Release;
use std::time::Duration;

/// Longest wait for an idle server, in seconds; longer ones are cut to it.
const LONGEST_WAIT: f64 = 86_400.0;

/// Flushes when idle: at once without `timeout`, within it otherwise (status 400 else).
pub(super) async fn flush_cache(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    let timeout = timeout(call.query)?;
    if call.state.flushing.swap(true, AcqRel) {
        return Err(ApiError::bad_request("another flush is already in progress"));
    }
    let _turn = Turn(call.state);
    if !call.state.is_idle() {
        let Some(timeout) = timeout else {
            return Err(ApiError::bad_request("the server is not idle; give a timeout to wait"));
        };
        if tokio::time::timeout(timeout, idle(call.state)).await.is_err() {
            return Err(ApiError::bad_request("timed out while waiting for the server to be idle"));
        }
    }
    call.state.flush_cache(true);
    Ok(reply::text(200, "Cache flushed.\n"))
}

/// Only one flush at a time; dropping it, also by the client's leaving, makes way.
struct Turn<'a>(&'a State);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.flushing.store(false, Release);
    }
}

async fn idle(state: &State) {
    loop {
        // Registered before the check, so that no end is missed.
        let ended = state.idle.notified();
        if state.is_idle() {
            return;
        }
        ended.await;
    }
}

fn timeout(query: &str) -> Result<Option<Duration>, ApiError> {
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, value)) = pairs.find(|(name, _)| *name == "timeout") else { return Ok(None) };
    match value.parse::<f64>() {
        Ok(seconds) if seconds >= 0.0 => {
            // 0 means not to wait.
            let wait = Duration::from_secs_f64(seconds.min(LONGEST_WAIT));
            Ok((!wait.is_zero()).then_some(wait))
        }
        _ => Err(ApiError::new(422, "`timeout` must be a number of seconds, at least 0")),
    }
}

/// Empties the prefix cache of what no running request uses, without waiting.
pub(super) fn reset_prefix_cache(call: &Call<'_>) -> Response<SimBody> {
    call.state.flush_cache(false);
    reply::text(200, "")
}

pub(super) fn start_profile(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    call.state.start_profile(StartRequest::parse(&call.body)?)?;
    Ok(reply::text(200, "Start profiling.\n"))
}

pub(super) fn stop_profile(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    call.state.stop_profile()?;
    Ok(reply::text(200, "Stop profiling. This will take some time.\n"))
}
