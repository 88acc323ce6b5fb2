//! The simulator's own endpoints below `/sim`.

use super::{Call, SimBody, reply};
use crate::sync::lock;
use crate::wire::ApiError;
use http::Response;
use serde::Serialize;

/// `GET /sim/truth`: the truth log.
pub(super) fn truth(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    let records = lock(&call.state.truth).records().to_vec();
    as_json(&records)
}

/// `GET /sim/stats`: the counts.
pub(super) fn stats(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    let steps = call.state.steps();
    let mut profile = lock(&call.state.profile);
    let mut stats = serde_json::to_value(call.state.stats()).map_err(|error| internal(&error))?;
    if let Some(fields) = stats.as_object_mut() {
        fields.insert("steps".to_owned(), steps.into());
        fields.insert("profiling".to_owned(), profile.is_running(steps).into());
        fields.insert("profiles_started".to_owned(), profile.started.into());
    }
    as_json(&stats)
}

/// `POST /sim/reset`: forgets the truth log and the counts.
pub(super) fn reset(call: &Call<'_>) -> Response<SimBody> {
    call.state.reset();
    reply::json(200, "{}")
}

/// `GET /sim/config`: the configuration, without the key.
pub(super) fn config(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    let mut config = call.live.config.clone();
    config.api_key = config.api_key.map(|_| "(set)".to_owned());
    as_json(&config)
}

/// `POST /sim/config`: changes the fields given.
pub(super) fn configure(call: &Call<'_>) -> Result<Response<SimBody>, ApiError> {
    call.state.patch(&call.body).map_err(|error| ApiError::bad_request(error.to_string()))?;
    Ok(reply::json(200, "{}"))
}

fn as_json(value: &impl Serialize) -> Result<Response<SimBody>, ApiError> {
    Ok(reply::json(200, serde_json::to_vec(value).map_err(|error| internal(&error))?))
}

fn internal(error: &serde_json::Error) -> ApiError {
    ApiError::new(500, error.to_string())
}
