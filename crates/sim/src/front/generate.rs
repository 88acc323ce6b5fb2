//! The endpoints that generate tokens.

use super::{Call, SimBody, reply};
use crate::config::Timing;
use crate::engine::{Job, block_hashes};
use crate::faults::FaultPlan;
use crate::live::Live;
use crate::order::Order;
use crate::pace::Pace;
use crate::request::Prompt;
use crate::state::Ticket;
use crate::stream::TokenStream;
use crate::sync::lock;
use crate::truth::TruthRecord;
use crate::wire::{ApiError, Endpoint, Lane, Shape};
use crate::work::Work;
use crate::{clock, picture, random};
use http::Response;
use std::borrow::Cow;
use std::sync::Arc;

pub(super) async fn generate(
    call: &Call<'_>,
    endpoint: Endpoint,
    faults: &mut Option<Box<FaultPlan>>,
) -> Result<Response<SimBody>, ApiError> {
    let content_type = call.headers.get(http::header::CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let order = Order::parse(endpoint, content_type, &call.body)?;
    check_model(call, order.model.as_deref())?;
    let number = call.state.number();
    let (lanes, prompts) = lanes(&call.live, &order, number)?;
    let jobs = lanes.iter().map(|lane| Job {
        id: call.state.job(),
        prompt_tokens: lane.prompt_tokens,
        output_tokens: lane.total,
        blocks: prompts
            .get(lane.index as usize / order.choices)
            .map(|prompt| prompt.blocks.clone())
            .unwrap_or_default(),
    });
    let pace = pace(call, jobs)?;
    let request_id = request_id(call).or(order.request_id);
    let shape = Shape {
        endpoint,
        live: Arc::clone(&call.live),
        id: match (&request_id, endpoint) {
            (Some(name), Endpoint::Generate) => escaped(name),
            _ => format!("{number:016x}"),
        },
        listed: order.listed,
        include_usage: order.include_usage,
        continuous_usage: order.continuous_usage,
        cached_details: order.cached_details,
        incremental: order.incremental,
        tool: order.tool.map(|name| serde_json::Value::from(name).to_string()),
        json: order.json,
    };
    let record = TruthRecord {
        id: number,
        request_id,
        path: call.path.to_owned(),
        received_ns: call.state.nanos(call.received),
        prompt_tokens: prompts.iter().map(|prompt| u64::from(prompt.tokens)).sum(),
        output_tokens: lanes.iter().map(|lane| u64::from(lane.total)).sum(),
        ..TruthRecord::default()
    };
    let limit = call.live.config.truth_limit;
    let ticket = Ticket::new(Arc::clone(call.state), call.received, limit, record);
    let mut work = Work { lanes, pace, ticket };
    if order.stream {
        let stream = TokenStream::new(shape, work, Arc::clone(call.link), faults.take());
        return Ok(reply::stream(stream));
    }
    let now = work.complete().await;
    for lane in &mut work.lanes {
        shape.open(lane);
        work.ticket.sent(now, lane.index, lane.total);
    }
    let body = shape.whole(&mut work.lanes, work.ticket.seconds(now));
    let cut = faults.as_ref().and_then(|faults| reply::whole_cut(faults, body.len()));
    work.ticket.set_finished(cut.is_none());
    Ok(reply::json(200, body))
}

/// Refuses another model than the one served, where the configuration wants that.
pub(super) fn check_model(call: &Call<'_>, model: Option<&str>) -> Result<(), ApiError> {
    let config = &call.live.config;
    match model {
        Some(model) if config.strict_model && model != config.model => {
            Err(ApiError::new(404, format!("the model `{model}` does not exist")))
        }
        _ => Ok(()),
    }
}

/// Bytes of a recording that are a token: 20 ms of 16 bits, 16000 times a second.
const AUDIO_TOKEN: usize = 640;

/// What the server makes of one prompt.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) tokens: u32,
    pub(super) blocks: Vec<u64>,
}

/// Counts a prompt's tokens and, with an engine, hashes its blocks.
pub(super) fn measure(live: &Live, prompt: &Prompt<'_>) -> Measured {
    let block = live.cost().map_or(0, |cost| cost.block_tokens as usize);
    let per_token = live.config.prompt_count.bytes_per_token();
    let tokens = |bytes: usize| u32::try_from(bytes.div_ceil(per_token)).unwrap_or(u32::MAX);
    match prompt {
        Prompt::Text(text) => Measured {
            tokens: tokens(text.len()),
            blocks: block_hashes(text.as_bytes(), block * per_token),
        },
        Prompt::Ids(ids) => Measured {
            tokens: u32::try_from(ids.len()).unwrap_or(u32::MAX),
            blocks: if block == 0 {
                Vec::new()
            } else {
                let bytes: Vec<u8> = ids.iter().flat_map(|id| id.to_le_bytes()).collect();
                block_hashes(&bytes, block * size_of::<u32>())
            },
        },
        Prompt::Audio(file) => Measured {
            tokens: u32::try_from(file.len().div_ceil(AUDIO_TOKEN)).unwrap_or(u32::MAX),
            blocks: block_hashes(file, block * AUDIO_TOKEN),
        },
        Prompt::Chat(texts) => Measured {
            tokens: tokens(texts.iter().map(|text| text.len()).sum()),
            blocks: if block == 0 {
                Vec::new()
            } else {
                block_hashes(texts.concat().as_bytes(), block * per_token)
            },
        },
    }
}

/// The same for a prompt with images, which stand before its text.
pub(super) fn measure_with(live: &Live, prompt: &Prompt<'_>, images: &[Cow<'_, str>]) -> Measured {
    let text = measure(live, prompt);
    let mut tokens = text.tokens;
    let block = live.cost().map_or(0, |cost| cost.block_tokens);
    let (mut blocks, mut seen) = (Vec::new(), 0);
    for image in images {
        let cost = picture::tokens(image);
        tokens = tokens.saturating_add(cost);
        if let Some(count) = cost.checked_div(block) {
            let [mut hash] = block_hashes(image.as_bytes(), image.len().max(1))[..] else {
                continue;
            };
            for _ in 0..count {
                hash = random::mix(hash, seen, 0);
                blocks.push(hash);
            }
            seen = hash;
        }
    }
    // What is in front of a text is a part of what it is found by.
    blocks.extend(
        text.blocks.iter().map(|&hash| if seen == 0 { hash } else { random::mix(hash, seen, 1) }),
    );
    Measured { tokens, blocks }
}

/// The sequences of a request: every choice of every prompt.
fn lanes(
    live: &Live,
    order: &Order<'_>,
    number: u64,
) -> Result<(Vec<Lane>, Vec<Measured>), ApiError> {
    let config = &live.config;
    let mut lanes = Vec::with_capacity(order.prompts.len() * order.choices);
    let mut prompts = Vec::with_capacity(order.prompts.len());
    for (row, prompt) in order.prompts.iter().enumerate() {
        let images = order.images.get(row).map(Vec::as_slice).unwrap_or_default();
        let measured = measure_with(live, prompt, images);
        let Some(limits) = order.limits_of(row) else { continue };
        let needed = u64::from(measured.tokens) + u64::from(limits.tokens);
        if needed > u64::from(config.context_tokens) {
            return Err(ApiError::bad_request(format!(
                "{} prompt tokens and {} output tokens exceed the context of {} tokens",
                measured.tokens, limits.tokens, config.context_tokens
            )));
        }
        for choice in 0..order.choices {
            let index = lanes.len() as u32;
            let mut lane = Lane::new(index, measured.tokens, limits.tokens);
            lane.first_of_prompt = choice == 0;
            lane.interval = limits.interval.max(config.coalesce).max(1);
            if !limits.ignore_eos && limits.tokens > 0 {
                let stream = number << 16 | u64::from(index);
                if random::unit(config.seed, stream, 0) < config.early_stop {
                    lane.stops = true;
                    let place = random::mix(config.seed, stream, 1) % u64::from(limits.tokens);
                    lane.total = 1 + place as u32;
                }
            }
            if matches!(order.endpoint, Endpoint::Chat | Endpoint::Responses) {
                lane.reasoning = reasoning_tokens(config.reasoning_tokens, order, lane.total);
            }
            lanes.push(lane);
        }
        prompts.push(measured);
    }
    Ok((lanes, prompts))
}

/// How many of a chat reply's tokens are reasoning.
fn reasoning_tokens(configured: u32, order: &Order<'_>, total: u32) -> u32 {
    match order.thinking {
        Some(false) => 0,
        Some(true) if configured == 0 => total / 2,
        _ => configured.min(total),
    }
}

/// Starts the clock of a request: fixed times from now, or jobs for the engine.
pub(super) fn pace(call: &Call<'_>, jobs: impl Iterator<Item = Job>) -> Result<Pace, ApiError> {
    let state = call.state;
    match (&call.live.timeline, &call.live.config.timing) {
        (Some(timeline), _) => {
            let mut pace = Pace::Engine {
                timeline: Arc::clone(timeline),
                epoch: state.epoch,
                jobs: Vec::new(),
            };
            let now = clock::now();
            for job in jobs {
                let id = job.id;
                let result = lock(timeline).submit(state.nanos(now), job);
                if let Err(error) = result {
                    pace.give_up(now);
                    return Err(ApiError::bad_request(error.to_string()));
                }
                if let Pace::Engine { jobs, .. } = &mut pace {
                    jobs.push(id);
                }
            }
            Ok(pace)
        }
        (None, Timing::Canned { ttft, itl }) => Ok(Pace::Canned {
            first: clock::after(call.received, clock::nanos(*ttft)),
            gap_ns: clock::nanos(*itl),
        }),
        (None, Timing::Engine(_)) => Err(ApiError::new(500, "the engine is missing")),
    }
}

/// The client's name for the request, from its header.
fn request_id(call: &Call<'_>) -> Option<String> {
    let value = call.headers.get("x-request-id")?;
    value.to_str().ok().map(str::to_owned)
}

/// A text as it stands inside a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.get(1..quoted.len() - 1).unwrap_or_default().to_owned()
}
