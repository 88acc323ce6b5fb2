//! The HTTP front: routes, authorization, injected statuses.

mod admin;
mod embeddings;
mod generate;
mod info;
mod maintenance;
mod reply;

pub(crate) use reply::SimBody;

use embeddings::Answers;

use crate::clock;
use crate::faults::{CloseAfter, FaultPlan, StatusFault};
use crate::link::Link;
use crate::live::Live;
use crate::state::State;
use crate::wire::{ApiError, Endpoint};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Body;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Generation(Endpoint),
    Vectors(Answers),
    Models,
    ModelInfo,
    ServerInfo,
    Health,
    Metrics,
    FlushCache,
    ResetPrefixCache,
    StartProfile,
    StopProfile,
    Truth,
    Stats,
    Reset,
    Config,
}

impl Route {
    fn of(path: &str) -> Option<Self> {
        Some(match path {
            "/generate" => Self::Generation(Endpoint::Generate),
            // A Truss whose model speaks as completions do.
            "/v1/completions" | "/v1/models/model:predict" => {
                Self::Generation(Endpoint::Completions)
            }
            "/v2/models/ensemble/generate_stream" => Self::Generation(Endpoint::Triton),
            "/v1/chat/completions" => Self::Generation(Endpoint::Chat),
            "/v1/responses" => Self::Generation(Endpoint::Responses),
            "/v1/audio/transcriptions" | "/v1/audio/translations" => {
                Self::Generation(Endpoint::Transcription)
            }
            "/v1/embeddings" | "/embeddings" => Self::Vectors(Answers::Embeddings),
            "/pooling" => Self::Vectors(Answers::Pooled),
            "/rerank" | "/v1/rerank" | "/v2/rerank" => Self::Vectors(Answers::Ranking),
            "/v1/models" => Self::Models,
            "/model_info" | "/get_model_info" => Self::ModelInfo,
            "/server_info" | "/get_server_info" => Self::ServerInfo,
            "/health" | "/health_generate" | "/ping" | "/v2/health/ready" | "/v1/models/model" => {
                Self::Health
            }
            "/metrics" => Self::Metrics,
            "/flush_cache" => Self::FlushCache,
            "/reset_prefix_cache" | "/hicache/storage-backend/clear" => Self::ResetPrefixCache,
            "/start_profile" => Self::StartProfile,
            "/stop_profile" => Self::StopProfile,
            "/sim/truth" => Self::Truth,
            "/sim/stats" => Self::Stats,
            "/sim/reset" => Self::Reset,
            "/sim/config" => Self::Config,
            _ => return None,
        })
    }

    /// The methods it answers, as an `Allow` header lists them.
    fn methods(self) -> &'static str {
        match self {
            Self::Generation(_) | Self::Vectors(_) | Self::ResetPrefixCache | Self::Reset => "POST",
            Self::Models
            | Self::ModelInfo
            | Self::ServerInfo
            | Self::Metrics
            | Self::Truth
            | Self::Stats => "GET",
            Self::FlushCache
            | Self::StartProfile
            | Self::StopProfile
            | Self::Health
            | Self::Config => "GET, POST",
        }
    }

    fn allows(self, method: &Method) -> bool {
        self.methods().split(", ").any(|allowed| allowed == method.as_str())
    }

    /// Whether it produces tokens or embeddings: what fault rules without a path act on.
    fn generates(self) -> bool {
        matches!(self, Self::Generation(_) | Self::Vectors(_))
    }

    /// Whether it is open even where a key is asked for.
    fn is_open(self) -> bool {
        matches!(
            self,
            Self::Health | Self::Metrics | Self::Truth | Self::Stats | Self::Reset | Self::Config
        )
    }
}

/// A request whose body has been read.
struct Call<'a> {
    state: &'a Arc<State>,
    live: Arc<Live>,
    link: &'a Arc<Link>,
    method: &'a Method,
    path: &'a str,
    query: &'a str,
    headers: &'a HeaderMap,
    body: Bytes,
    /// When the whole request was read.
    received: Instant,
}

/// Answers one request. Never fails: whatever is wrong with the request is told in the response.
pub(crate) async fn answer<B>(
    state: &Arc<State>,
    link: &Arc<Link>,
    request: Request<B>,
) -> Result<Response<SimBody>, Infallible>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let live = state.live();
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, live.config.max_body_bytes).collect().await;
    let path = parts.uri.path();
    let route = Route::of(path);
    let generates = route.is_some_and(Route::generates);
    if !generates {
        state.counts.other.fetch_add(1, Relaxed);
    }
    let body = match body {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            return Ok(refusal(state, generates, &ApiError::new(413, "the body is too long")));
        }
        Err(error) => {
            let message = format!("the body could not be read: {error}");
            return Ok(refusal(state, generates, &ApiError::bad_request(message)));
        }
    };
    let mut faults = FaultPlan::draw(&live.rules, path, generates);
    link.set_wire(faults.as_ref().map(|faults| faults.wire).unwrap_or_default());
    let headers = faults.as_mut().map(|faults| std::mem::take(&mut faults.headers));
    let call = Call {
        state,
        live,
        link,
        method: &parts.method,
        path,
        query: parts.uri.query().unwrap_or_default(),
        headers: &parts.headers,
        body,
        received: clock::now(),
    };
    if let Some(faults) = &faults {
        state.counts.faults.fetch_add(1, Relaxed);
        if !faults.delay.is_zero() {
            tokio::time::sleep(faults.delay).await;
        }
        if let Some(reset) = faults.hang_up {
            link.close(CloseAfter { delay: Duration::ZERO, reset, on_next_byte: false });
        }
        if faults.silence || faults.hang_up.is_some() {
            if generates {
                state.counts.refused.fetch_add(1, Relaxed);
            }
            // Until the connection is over.
            return std::future::pending().await;
        }
        if let Some(status) = &faults.status {
            return Ok(injected(&call, generates, status).with_faults(link, faults));
        }
    }
    let response = match route {
        None => Err(ApiError::new(404, format!("no such path: {path}"))),
        Some(route) if !route.allows(&parts.method) => {
            let mut response = refusal(state, generates, &ApiError::new(405, "method not allowed"));
            let allow = http::HeaderValue::from_static(route.methods());
            response.headers_mut().insert(http::header::ALLOW, allow);
            return Ok(response);
        }
        Some(route) if !route.is_open() && !authorized(&call) => {
            Err(ApiError::new(401, "a valid API key is required"))
        }
        Some(route) => dispatch(&call, route, &mut faults).await,
    };
    let mut response = response.unwrap_or_else(|error| refusal(state, generates, &error));
    set_headers(&mut response, headers.into_iter().flatten());
    Ok(match &faults {
        // Streams took their faults with them.
        Some(faults) => response.with_faults(link, faults),
        None => response,
    })
}

async fn dispatch(
    call: &Call<'_>,
    route: Route,
    faults: &mut Option<Box<FaultPlan>>,
) -> Result<Response<SimBody>, ApiError> {
    match route {
        Route::Generation(endpoint) => generate::generate(call, endpoint, faults).await,
        Route::Vectors(answers) => embeddings::embed(call, answers).await,
        Route::Models => Ok(info::models(call)),
        Route::ModelInfo => Ok(info::model_info(call)),
        Route::ServerInfo => Ok(info::server_info(call)),
        Route::Health => Ok(reply::text(200, "")),
        Route::Metrics => Ok(info::metrics(call)),
        Route::FlushCache => maintenance::flush_cache(call).await,
        Route::ResetPrefixCache => Ok(maintenance::reset_prefix_cache(call)),
        Route::StartProfile => maintenance::start_profile(call),
        Route::StopProfile => maintenance::stop_profile(call),
        Route::Truth => admin::truth(call),
        Route::Stats => admin::stats(call),
        Route::Reset => Ok(admin::reset(call)),
        Route::Config if call.method == Method::GET => admin::config(call),
        Route::Config => admin::configure(call),
    }
}

fn authorized(call: &Call<'_>) -> bool {
    let Some(key) = &call.live.config.api_key else { return true };
    let given = call.headers.get(http::header::AUTHORIZATION);
    let token = given.and_then(|value| value.as_bytes().split_at_checked(7));
    token.is_some_and(|(scheme, token)| {
        scheme.eq_ignore_ascii_case(b"Bearer ") && token == key.as_bytes()
    })
}

/// An error answer.
fn refusal(state: &State, generates: bool, error: &ApiError) -> Response<SimBody> {
    if generates {
        state.counts.refused.fetch_add(1, Relaxed);
    }
    reply::json(error.status, error.json())
}

/// The answer that a fault rule wants.
fn injected(call: &Call<'_>, generates: bool, fault: &StatusFault) -> Response<SimBody> {
    if generates {
        call.state.counts.refused.fetch_add(1, Relaxed);
    }
    let mut response = Response::new(SimBody::whole(fault.body.clone()));
    *response.status_mut() =
        StatusCode::from_u16(fault.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set_headers(&mut response, fault.headers.iter().cloned());
    response
}

fn set_headers(
    response: &mut Response<SimBody>,
    headers: impl IntoIterator<Item = (String, String)>,
) {
    for (name, value) in headers {
        // Both were checked when the rule was read.
        if let (Ok(name), Ok(value)) =
            (http::HeaderName::from_bytes(name.as_bytes()), http::HeaderValue::from_str(&value))
        {
            response.headers_mut().insert(name, value);
        }
    }
}

use reply::WithFaults as _;
