//! From rows to encoded requests and their times.

use super::VllmPlan;
use super::args::LoraAssignment;
use crate::exit::OrCode;
use crate::prepare::{BODIES, PlanHash, Prepared, WARMUP_OUTPUT, WARMUP_SEED};
use crate::{Code, Failure};
use servebench_arrival::{Burstiness, Gamma, Rate, stretched};
use servebench_backends::vllm::VllmOptions;
use servebench_core::random::{Draws, PythonRandom};
use servebench_core::{Prompt, Protocol, Request, Sample, Stamp};
use servebench_datasets::vllm::VllmLoaded;
use servebench_run::{Encoder, Job};
use servebench_tokens::Tokenizer;
use std::sync::Arc;

/// Header of a request's own id.
const REQUEST_ID: &str = "x-request-id";

/// When each request is due.
pub(super) fn schedule(
    plan: &VllmPlan,
    samples: &[Sample],
    draws: &mut Draws,
) -> Result<Vec<Stamp>, Failure> {
    let (load, count) = (&plan.load, samples.len());
    if load.self_timed {
        // A row that comes after a later one goes out with that one.
        return Ok(samples
            .iter()
            .scan(Stamp::default(), |due, sample| {
                *due = (*due).max(sample.timestamp.unwrap_or_default());
                Some(*due)
            })
            .collect());
    }
    let burstiness = Burstiness::new(load.burstiness).or_code(Code::Usage)?;
    if let Some(ramp) = &load.ramp {
        return Ok(ramp.ramp()?.schedule(count, burstiness, &mut draws.numpy));
    }
    let rate = Rate::per_second(load.request_rate).or_code(Code::Usage)?;
    Ok(if load.stretched {
        stretched(count, rate, burstiness, &mut draws.numpy)
    } else {
        Gamma::new(rate, burstiness, &mut draws.numpy).take(count).collect()
    })
}

/// Encodes every request. `draws` go on where the dataset left them: first the times, then the
/// adapters, as in the Python tool.
pub(super) fn prepare(
    plan: &VllmPlan,
    model: &str,
    mut loaded: VllmLoaded,
    tokenizer: Option<&Tokenizer>,
    draws: &mut Draws,
) -> Result<Prepared, Failure> {
    let options = VllmOptions {
        model: model.to_owned(),
        ignore_eos: plan.ignore_eos,
        logprobs: plan.logprobs,
        extra_body: plan.extra_body.clone(),
    };
    let protocol = plan.backend.protocol(&plan.endpoint, options);
    let adapters = adapters(plan, loaded.samples.len(), draws);
    let schedule = schedule(plan, &loaded.samples, draws)?;
    let first = loaded.samples.first().cloned();
    for (index, sample) in loaded.samples.iter_mut().enumerate() {
        fit(plan, sample, loaded.request_ids.then_some(index as u64))?;
    }
    let samples: Arc<[Sample]> = loaded.samples.into();
    let mut hash = PlanHash::new(protocol.path());
    let mut requests = Vec::with_capacity(samples.len());
    let mut bytes = 0;
    for (index, sample) in samples.iter().enumerate() {
        let adapter = adapters.get(index).map(|adapter| &**adapter);
        let mut request = request(index, protocol.as_ref(), sample, adapter);
        if loaded.request_ids {
            let id = format!("{}{index}", plan.request_id_prefix);
            request.headers.push((REQUEST_ID.to_owned(), id));
        }
        hash.add(&request, schedule[index]);
        bytes += request.body.len();
        requests.push(request);
    }
    let held = bytes <= BODIES;
    if !held {
        for request in &mut requests {
            drop(std::mem::take(&mut request.body));
        }
    }
    let encoder = (!held).then(|| {
        let (protocol, samples) = (Arc::clone(&protocol), Arc::clone(&samples));
        Encoder::new(BODIES, move |index| {
            let adapter = adapters.get(index).map(|adapter| &**adapter);
            protocol.encode(&samples[index], adapter)
        })
    });
    let max_concurrency = plan.load.max_concurrency;
    let (warm, warmup_prompts) = warm_up(plan, protocol.as_ref(), first.as_ref(), tokenizer)?;
    Ok(Prepared {
        job: Job { encoder, schedule: schedule.into(), max_concurrency, ..Job::burst(requests) },
        warmup: Job { max_concurrency, ..Job::burst(warm) },
        warmup_prompts,
        protocol,
        samples,
        sha256: hash.finish(),
    })
}

/// Puts a row into the words of the backend, with the number of its request if that has an id. A row that
/// cannot be sent is found here, before any request.
fn fit(plan: &VllmPlan, sample: &mut Sample, number: Option<u64>) -> Result<(), Failure> {
    let backend = plan.backend;
    backend.adapt(sample, number);
    let Some(reason) = backend.refuses(sample) else { return Ok(()) };
    let name = plan.dataset.dataset.name();
    let text = format!("--dataset-name {name} is not for --backend {backend}: {reason}");
    Err(Failure::new(Code::Data, anyhow::anyhow!(text)))
}

pub(super) fn request(
    id: usize,
    protocol: &dyn Protocol,
    sample: &Sample,
    adapter: Option<&str>,
) -> Request {
    Request {
        id: id as u64,
        body: protocol.encode(sample, adapter),
        prompt_len: sample.prompt_len,
        output_len: sample.output_len,
        ..Request::default()
    }
}

/// The adapter of each request; empty without adapters.
fn adapters(plan: &VllmPlan, count: usize, draws: &mut Draws) -> Vec<Arc<str>> {
    let names: Vec<Arc<str>> =
        plan.load.lora_modules.iter().map(|name| Arc::from(name.as_str())).collect();
    if names.is_empty() {
        return Vec::new();
    }
    let random = plan.load.lora_assignment == LoraAssignment::Random;
    let mut choose = |index: usize| {
        let place = if random {
            draws.python.choice_index(names.len() as u32) as usize
        } else {
            index % names.len()
        };
        Arc::clone(&names[place])
    };
    (0..count).map(&mut choose).collect()
}

/// Requests before the measured ones: with prompts of their own where there is a tokenizer to make them,
/// since the first row, sent twice, would be found in the prefix cache.
fn warm_up(
    plan: &VllmPlan,
    protocol: &dyn Protocol,
    first: Option<&Sample>,
    tokenizer: Option<&Tokenizer>,
) -> Result<(Vec<Request>, &'static str), Failure> {
    let count = plan.run.load.warmup_requests;
    let (Some(first), true) = (first, count > 0) else { return Ok((Vec::new(), "none")) };
    let mut row = Sample { output_len: first.output_len.min(WARMUP_OUTPUT), ..first.clone() };
    row.extra_body.clear();
    let has_own = matches!(first.prompt, Prompt::Text(_) | Prompt::Ids(_));
    let own = tokenizer.filter(|_| has_own);
    let mut random = PythonRandom::new(plan.dataset.seed ^ WARMUP_SEED);
    let requests = (0..count).map(|id| {
        if let Some(tokenizer) = own {
            let length = first.prompt_len.max(1) as usize;
            let ids = random.choices_index(tokenizer.vocab_size().max(1), length);
            row.prompt = match &first.prompt {
                Prompt::Ids(_) => Prompt::Ids(ids),
                _ => Prompt::Text(tokenizer.decode(&ids, true).or_code(Code::Data)?),
            };
        }
        // These have no id.
        fit(plan, &mut row, None)?;
        Ok(request(id, protocol, &row, None))
    });
    let whence = if own.is_some() { "separate" } else { "row_0" };
    Ok((requests.collect::<Result<_, Failure>>()?, whence))
}
