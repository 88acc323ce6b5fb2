//! What a generation request asks for, whatever endpoint it came to.

use crate::form;
use crate::request::{
    ChatBody, CompletionsBody, NativeBody, OneOrMany, Prompt, Prompts, ResponsesBody, Rid,
    Sampling, StreamOptions, Structured, ToolChoice, TritonBody,
};
use crate::wire::{ApiError, Endpoint};
use std::borrow::Cow;

/// Most sequences one request may ask for: rows of a batch times choices.
const MAX_SEQUENCES: usize = 4096;

/// Output tokens of a request that sets no limit, on `/v1/completions` and elsewhere.
const DEFAULT_COMPLETION_TOKENS: u32 = 16;
const DEFAULT_TOKENS: u32 = 128;

/// The limits of one sequence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) tokens: u32,
    pub(crate) ignore_eos: bool,
    /// Tokens per event asked for.
    pub(crate) interval: u32,
}

/// A generation request.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: Option<Cow<'a, str>>,
    pub(crate) prompts: Vec<Prompt<'a>>,
    /// The images of each prompt; there may be fewer lists than prompts.
    pub(crate) images: Vec<Vec<Cow<'a, str>>>,
    /// One entry, or one per prompt.
    pub(crate) limits: Vec<Limits>,
    /// Sequences per prompt.
    pub(crate) choices: usize,
    /// Whether a native reply is a list.
    pub(crate) listed: bool,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) continuous_usage: bool,
    pub(crate) cached_details: bool,
    /// Whether Triton sends pieces of text rather than all of it.
    pub(crate) incremental: bool,
    /// What the request says about reasoning.
    pub(crate) thinking: Option<bool>,
    /// The function that the reply shall call.
    pub(crate) tool: Option<String>,
    /// Whether the reply's text shall be JSON.
    pub(crate) json: bool,
    pub(crate) request_id: Option<String>,
}

impl<'a> Order<'a> {
    /// Reads a request body.
    pub(crate) fn parse(
        endpoint: Endpoint,
        content_type: &str,
        body: &'a [u8],
    ) -> Result<Self, ApiError> {
        let bad = |error: serde_json::Error| ApiError::bad_request(error.to_string());
        let order = match endpoint {
            Endpoint::Generate => native(serde_json::from_slice(body).map_err(bad)?),
            Endpoint::Completions => completions(serde_json::from_slice(body).map_err(bad)?),
            Endpoint::Chat => chat(serde_json::from_slice(body).map_err(bad)?),
            Endpoint::Responses => responses(serde_json::from_slice(body).map_err(bad)?),
            Endpoint::Transcription => transcription(content_type, body),
            Endpoint::Triton => triton(serde_json::from_slice(body).map_err(bad)?),
        }?;
        let sequences = order.prompts.len().saturating_mul(order.choices);
        if sequences > MAX_SEQUENCES {
            let message = format!("{sequences} sequences in one request, {MAX_SEQUENCES} allowed");
            return Err(ApiError::bad_request(message));
        }
        let has_images =
            |row: usize| order.images.get(row).is_some_and(|images| !images.is_empty());
        let empty = |(row, prompt): (usize, &Prompt<'_>)| prompt.is_empty() && !has_images(row);
        if order.prompts.iter().enumerate().any(empty) {
            return Err(ApiError::bad_request("the prompt is empty"));
        }
        Ok(order)
    }

    /// The limits of one prompt's sequences.
    pub(crate) fn limits_of(&self, prompt: usize) -> Option<Limits> {
        self.limits.get(prompt).or_else(|| self.limits.first()).copied()
    }
}

impl Prompt<'_> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            Self::Ids(ids) => ids.is_empty(),
            Self::Chat(_) => false,
            Self::Audio(file) => file.is_empty(),
        }
    }
}

fn native(body: NativeBody<'_>) -> Result<Order<'_>, ApiError> {
    let prompts = match (body.text, body.input_ids) {
        (Some(prompts), None) | (None, Some(prompts)) => prompts,
        (Some(_), Some(_)) => {
            return Err(ApiError::bad_request("`text` and `input_ids` exclude each other"));
        }
        (None, None) => return Err(ApiError::bad_request("`text` or `input_ids` is missing")),
    };
    let samplings = match body.sampling_params {
        None => vec![Sampling::default()],
        Some(OneOrMany::One(sampling)) => vec![sampling],
        Some(OneOrMany::Many(list)) if list.len() == prompts.rows.len() => list,
        Some(OneOrMany::Many(list)) => {
            let message =
                format!("{} sampling_params for {} prompts", list.len(), prompts.rows.len());
            return Err(ApiError::bad_request(message));
        }
    };
    let choices = samplings.first().and_then(|sampling| sampling.n).unwrap_or(1);
    if choices == 0 || samplings.iter().any(|sampling| sampling.n.unwrap_or(1) != choices) {
        return Err(ApiError::bad_request("`n` must be at least 1 and the same for all prompts"));
    }
    let limits = |sampling: &Sampling| Limits {
        tokens: sampling.max_new_tokens.unwrap_or(DEFAULT_TOKENS),
        ignore_eos: sampling.ignore_eos,
        interval: sampling.stream_interval.unwrap_or(1),
    };
    Ok(Order {
        endpoint: Endpoint::Generate,
        model: None,
        limits: samplings.iter().map(limits).collect(),
        choices: choices as usize,
        listed: prompts.batch || choices > 1,
        images: body.image_data.unwrap_or_default().of_prompts(prompts.rows.len()),
        prompts: prompts.rows,
        stream: body.stream.unwrap_or(false),
        include_usage: false,
        continuous_usage: false,
        cached_details: false,
        incremental: false,
        thinking: None,
        tool: None,
        json: false,
        request_id: name(body.rid),
    })
}

/// One prompt, always answered with events: a single one unless a stream is asked for. Generation goes
/// on past its end when the least length is the greatest.
fn triton(body: TritonBody<'_>) -> Result<Order<'_>, ApiError> {
    let missing = |what| ApiError::bad_request(format!("`{what}` is missing"));
    let text = body.text_input.ok_or_else(|| missing("text_input"))?;
    let tokens = body.max_tokens.ok_or_else(|| missing("max_tokens"))?;
    if tokens == 0 {
        return Err(ApiError::bad_request("`max_tokens` must be at least 1"));
    }
    let whole = body.min_length.is_some_and(|least| least >= tokens);
    let interval = if body.stream.unwrap_or(false) { 1 } else { u32::MAX };
    Ok(Order {
        endpoint: Endpoint::Triton,
        model: None,
        prompts: vec![Prompt::Text(text)],
        images: Vec::new(),
        limits: vec![Limits { tokens, ignore_eos: whole, interval }],
        choices: 1,
        listed: false,
        stream: true,
        include_usage: false,
        continuous_usage: false,
        cached_details: false,
        incremental: !body.accumulate_tokens.unwrap_or(false),
        thinking: None,
        tool: None,
        json: false,
        request_id: None,
    })
}

/// The fields that the two OpenAI endpoints share.
struct Common<'a> {
    endpoint: Endpoint,
    model: Option<Cow<'a, str>>,
    prompts: Prompts<'a>,
    tokens: u32,
    n: Option<u32>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    ignore_eos: Option<bool>,
    cached_details: Option<bool>,
    rid: Option<Rid<'a>>,
}

fn openai(common: Common<'_>) -> Result<Order<'_>, ApiError> {
    if common.model.is_none() {
        return Err(ApiError::bad_request("`model` is missing"));
    }
    if common.tokens == 0 {
        return Err(ApiError::bad_request("the token limit must be at least 1"));
    }
    let choices = common.n.unwrap_or(1);
    if choices == 0 {
        return Err(ApiError::bad_request("`n` must be at least 1"));
    }
    let options = common.stream_options.unwrap_or_default();
    let ignore_eos = common.ignore_eos.unwrap_or(false);
    Ok(Order {
        endpoint: common.endpoint,
        model: common.model,
        prompts: common.prompts.rows,
        images: Vec::new(),
        limits: vec![Limits { tokens: common.tokens, ignore_eos, interval: 1 }],
        choices: choices as usize,
        listed: false,
        stream: common.stream.unwrap_or(false),
        include_usage: options.include_usage.unwrap_or(false),
        continuous_usage: options.continuous_usage_stats.unwrap_or(false),
        cached_details: common.cached_details.unwrap_or(false),
        incremental: false,
        thinking: None,
        tool: None,
        json: false,
        request_id: name(common.rid),
    })
}

fn completions(body: CompletionsBody<'_>) -> Result<Order<'_>, ApiError> {
    let prompts = body.prompt.ok_or_else(|| ApiError::bad_request("`prompt` is missing"))?;
    if body.best_of.is_some_and(|best_of| best_of < body.n.unwrap_or(1)) {
        return Err(ApiError::bad_request("`best_of` must not be less than `n`"));
    }
    let json = is_json(body.structured_outputs);
    let order = openai(Common {
        endpoint: Endpoint::Completions,
        model: body.model,
        prompts,
        tokens: body.max_tokens.unwrap_or(DEFAULT_COMPLETION_TOKENS),
        n: body.n,
        stream: body.stream,
        stream_options: body.stream_options,
        ignore_eos: body.ignore_eos,
        cached_details: body.return_cached_tokens_details,
        rid: body.rid,
    })?;
    Ok(Order { json, ..order })
}

fn is_json(structured: Option<Structured>) -> bool {
    structured.is_some_and(|structured| structured.json.is_some())
}

fn chat(body: ChatBody<'_>) -> Result<Order<'_>, ApiError> {
    let messages = body.messages.unwrap_or_default();
    if messages.is_empty() {
        return Err(ApiError::bad_request("`messages` is missing or empty"));
    }
    let (mut texts, mut images) = (Vec::new(), Vec::new());
    for message in messages {
        texts.extend(message.content.texts);
        images.extend(message.content.images);
    }
    let tool = called_tool(body.tools.unwrap_or_default(), body.tool_choice)?;
    let json = is_json(body.structured_outputs);
    let thinking =
        body.chat_template_kwargs.and_then(|options| options.enable_thinking.or(options.thinking));
    let order = openai(Common {
        endpoint: Endpoint::Chat,
        model: body.model,
        prompts: Prompts { rows: vec![Prompt::Chat(texts)], batch: false },
        tokens: body.max_completion_tokens.or(body.max_tokens).unwrap_or(DEFAULT_TOKENS),
        n: body.n,
        stream: body.stream,
        stream_options: body.stream_options,
        ignore_eos: body.ignore_eos,
        cached_details: body.return_cached_tokens_details,
        rid: body.rid,
    })?;
    Ok(Order { images: vec![images], thinking, tool, json, ..order })
}

fn responses(body: ResponsesBody<'_>) -> Result<Order<'_>, ApiError> {
    let input = body.input.ok_or_else(|| ApiError::bad_request("`input` is missing"))?.0;
    if input.texts.iter().all(|text| text.is_empty()) && input.images.is_empty() {
        return Err(ApiError::bad_request("`input` is empty"));
    }
    let order = openai(Common {
        endpoint: Endpoint::Responses,
        model: body.model,
        prompts: Prompts { rows: vec![Prompt::Chat(input.texts)], batch: false },
        tokens: body.max_output_tokens.unwrap_or(DEFAULT_TOKENS),
        n: None,
        stream: body.stream,
        stream_options: None,
        ignore_eos: body.ignore_eos,
        cached_details: None,
        rid: None,
    })?;
    Ok(Order { images: vec![input.images], ..order })
}

/// A form with a recording. A flag is on when it says so in the way of JSON, Python or a browser.
fn transcription<'a>(content_type: &str, body: &'a [u8]) -> Result<Order<'a>, ApiError> {
    let fields = form::fields(content_type, body)
        .ok_or_else(|| ApiError::bad_request("the body is no multipart/form-data"))?;
    let field = |name: &str| fields.iter().find(|field| field.name == name);
    let flag = |name| {
        let on = |text: &str| ["true", "1", "on"].iter().any(|on| text.eq_ignore_ascii_case(on));
        field(name).map(|field| on(&field.text()))
    };
    let file = field("file").ok_or_else(|| ApiError::bad_request("`file` is missing"))?;
    let tokens = match field("max_completion_tokens").map(|field| field.text().parse()) {
        None => DEFAULT_TOKENS,
        Some(Ok(tokens)) => tokens,
        Some(Err(_)) => {
            return Err(ApiError::bad_request("`max_completion_tokens` is no number"));
        }
    };
    openai(Common {
        endpoint: Endpoint::Transcription,
        model: field("model").map(|field| Cow::Owned(field.text().into_owned())),
        prompts: Prompts { rows: vec![Prompt::Audio(file.value)], batch: false },
        tokens,
        n: None,
        stream: flag("stream"),
        stream_options: Some(StreamOptions {
            include_usage: flag("stream_include_usage"),
            continuous_usage_stats: flag("stream_continuous_usage_stats"),
        }),
        ignore_eos: flag("ignore_eos"),
        cached_details: None,
        rid: None,
    })
}

/// A tool is called when tools are given and `tool_choice` asks for one; without `tool_choice`
/// the reply is text.
fn called_tool(
    tools: Vec<crate::request::Tool>,
    choice: Option<ToolChoice>,
) -> Result<Option<String>, ApiError> {
    let mut names = tools.into_iter().filter_map(|tool| Some(tool.function?.name));
    match choice {
        None | Some(ToolChoice::None) => Ok(None),
        Some(ToolChoice::Any) => Ok(names.next()),
        Some(ToolChoice::Function(wanted)) => {
            let missing = || ApiError::bad_request(format!("no tool is called `{wanted}`"));
            names.find(|name| *name == wanted).map(Some).ok_or_else(missing)
        }
    }
}

fn name(rid: Option<Rid<'_>>) -> Option<String> {
    rid.and_then(|rid| rid.0).map(Cow::into_owned)
}
