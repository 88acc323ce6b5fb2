//! From plan to encoded requests: all that is slow happens here, before the clock starts.

use crate::args::LoraDistribution;
use crate::exit::OrCode;
use crate::names::Names;
use crate::progress::Ticker;
use crate::{Code, Failure, Io, LoadPlan, Plan};
use servebench_arrival::{PoissonGaps, Timeline};
use servebench_backends::GenerateOptions;
use servebench_core::random::{Draws, PythonRandom};
use servebench_core::{Prompt, Protocol, Request, Sample, Stamp};
use servebench_datasets::{load, measure_drift, noise_like};
use servebench_run::{Encoder, Endings, Job};
use servebench_tokens::{Hub, Tokenizer};
use sha2::{Digest, Sha256};
use std::collections::hash_map::RandomState;
use std::fmt::Write;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

/// Longest output of a warm-up request, in tokens.
pub(crate) const WARMUP_OUTPUT: u32 = 32;
/// Most prompt text that is encoded again to see whether prompts have the length asked for: some 15 ms of one
/// core, before the first request can go.
const DRIFT_BYTES: usize = 64 * 1024;
/// Most bytes of bodies that are held at once: all of an ordinary run's.
pub(crate) const BODIES: usize = 128 << 20;
/// Set apart from the seed of the measured prompts.
pub(crate) const WARMUP_SEED: u32 = 0x5eed_cafe;
/// Header that SGLang's router reads.
const ROUTING_KEY: &str = "X-SMG-Routing-Key";

/// Everything that will be sent.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) job: Job,
    pub(crate) warmup: Job,
    /// What the warm-up sends: `row_0` or `separate`.
    pub(crate) warmup_prompts: &'static str,
    pub(crate) protocol: Arc<dyn Protocol>,
    /// What the requests were made of.
    pub(crate) samples: Arc<[Sample]>,
    /// SHA-256 over schedule and payloads.
    pub(crate) sha256: String,
}

impl Prepared {
    /// Requests per second that are offered: as asked for, or in the mean of the trace.
    pub(crate) fn rate(&self, plan: &Plan) -> f64 {
        if !plan.load.use_trace_timestamps {
            return plan.load.request_rate.get();
        }
        let span = self.job.schedule.last().copied().unwrap_or_default().as_secs_f64();
        if span > 0.0 { self.job.schedule.len() as f64 / span } else { f64::INFINITY }
    }
}

/// Gives the memory of a job's bodies back, once all are sent, unless somebody else holds its requests.
pub(crate) fn let_bodies_go(job: &mut Job) {
    let requests = Arc::get_mut(&mut job.requests).unwrap_or_default();
    for request in requests {
        drop(std::mem::take(&mut request.body));
    }
}

/// Loads the dataset and encodes every request.
pub(crate) fn prepare(
    plan: &Plan,
    names: &Names,
    tokenizer: &Tokenizer,
    hub: &Hub,
    io: &Io,
) -> Result<Prepared, Failure> {
    let _ticker =
        if plan.report.progress { Ticker::preparing(io, tokenizer) } else { Ticker::silent() };
    let mut draws = Draws::new(plan.seed);
    let loaded = load(&plan.dataset, tokenizer, hub, &mut draws).or_code(Code::Data)?;
    for warning in &loaded.warnings {
        io.say(format_args!("warning: {warning}"));
    }
    let samples: Arc<[Sample]> = loaded.samples.into();
    if plan.dataset.name.is_random() {
        let drift = measure_drift(&samples, tokenizer, DRIFT_BYTES).or_code(Code::Data)?;
        if !drift.is_none() {
            io.say(format_args!("warning: {drift}"));
        }
    }
    let protocol = plan.backend.protocol(generate_options(plan, names));
    let run = run_name();
    let workload = Workload { plan, protocol: &protocol, samples: &samples, run: &run };
    let (job, sha256) = workload.encode(&mut draws, BODIES);
    let (warmup, warmup_prompts) = warm_up(plan, protocol.as_ref(), &samples, &run, tokenizer)?;
    let max_concurrency = plan.load.max_concurrency;
    let warmup = Job { max_concurrency, ..Job::burst(warmup) };
    Ok(Prepared { job, warmup, warmup_prompts, protocol, samples, sha256 })
}

/// Where upstream spreads a chunk's gap over the tokens of its text, the pieces must be known.
fn keeps_pieces(plan: &Plan) -> bool {
    plan.backend.info().itl == servebench_backends::ItlRule::PerChunkUnlessSpeculative
}

fn generate_options(plan: &Plan, names: &Names) -> GenerateOptions {
    let sampling = &plan.sampling;
    GenerateOptions {
        model: names.served.clone(),
        stream: sampling.stream,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        ignore_eos: sampling.ignore_eos,
        extra_body: plan.extra_body.clone(),
        return_logprob: sampling.return_logprob,
        top_logprobs_num: sampling.top_logprobs_num,
        logprob_start_len: sampling.logprob_start_len,
        token_ids_logprob: (!sampling.token_ids_logprob.is_empty())
            .then(|| sampling.token_ids_logprob.clone()),
        return_routed_experts: sampling.return_routed_experts,
        include_usage: sampling.include_usage,
        cache_report: plan.report.cache_report,
    }
}

/// What requests are made of.
struct Workload<'a> {
    plan: &'a Plan,
    protocol: &'a Arc<dyn Protocol>,
    samples: &'a Arc<[Sample]>,
    run: &'a str,
}

impl Workload<'_> {
    /// Bodies and due times, with the draws in the order in which the Python tool makes them: adapter,
    /// then gap, request by request; and their hash.
    ///
    /// Bodies are kept as long as there are not more than `most` bytes of them. Else they are encoded
    /// here for the hash, and once more by the run.
    fn encode(&self, draws: &mut Draws, most: usize) -> (Job, String) {
        let Self { plan, protocol, samples, run } = self;
        let gaps = PoissonGaps::new(plan.load.request_rate);
        let mut timeline = Timeline::default();
        let mut chooser = Adapters::new(&plan.load);
        let mut hash = PlanHash::new(protocol.path());
        let mut requests: Vec<Request> = Vec::new();
        let (mut schedule, mut adapters) = (Vec::new(), Vec::new());
        let (mut id, mut bytes) = (0, 0);
        for sample in samples.iter() {
            let adapter = chooser.next(draws);
            let mut request = request(id, protocol.as_ref(), sample, adapter, run);
            id += request.turns();
            let due = if plan.load.use_trace_timestamps {
                sample.timestamp.unwrap_or_default()
            } else {
                let due = timeline.now();
                timeline.advance(gaps.next_gap(&mut draws.numpy));
                due
            };
            hash.add(&request, due);
            let fitted = bytes <= most;
            bytes += request.body.len();
            if bytes > most {
                drop(std::mem::take(&mut request.body));
                if fitted {
                    for request in &mut requests {
                        drop(std::mem::take(&mut request.body));
                    }
                }
            }
            requests.push(request);
            schedule.push(due);
            adapters.push(adapter);
        }
        let job = Job {
            requests: requests.into(),
            encoder: (bytes > most).then(|| self.encoder(&adapters, most)),
            schedule: schedule.into(),
            max_concurrency: plan.load.max_concurrency,
            keep_pieces: keeps_pieces(plan),
            think: plan.load.think_time,
            release_slot: plan.load.release_slot_between_turns,
            clients: None,
            in_flight_guess: None,
            witness: None,
            endings: Endings::default(),
        };
        (job, hash.finish())
    }

    /// Encodes the same bodies again, each with its adapter.
    fn encoder(&self, adapters: &[Option<&str>], most: usize) -> Encoder {
        let adapters: Vec<Option<Arc<str>>> =
            adapters.iter().map(|adapter| adapter.map(Arc::from)).collect();
        let (protocol, samples) = (Arc::clone(self.protocol), Arc::clone(self.samples));
        Encoder::new(most, move |index| {
            protocol.encode(&samples[index], adapters[index].as_deref())
        })
    }
}

fn request(
    id: usize,
    protocol: &dyn Protocol,
    sample: &Sample,
    adapter: Option<&str>,
    run: &str,
) -> Request {
    Request {
        id: id as u64,
        body: protocol.encode(sample, adapter),
        headers: routing(sample, run),
        prompt_len: sample.prompt_len,
        output_len: sample.output_len,
        conversation: protocol.conversation(sample, adapter).map(Arc::new),
    }
}

/// The header by which SGLang's router keeps what belongs together on one server.
fn routing(sample: &Sample, run: &str) -> Vec<(String, String)> {
    let header = |key: &String| (ROUTING_KEY.to_owned(), format!("{run}_{key}"));
    sample.routing_key.iter().map(header).collect()
}

/// A name of this run alone, so that a router does not take its keys for those of an earlier run.
fn run_name() -> String {
    let random = RandomState::new().build_hasher().finish() as u32;
    format!("{random:08x}_{}", jiff::Timestamp::now().strftime("%Y%m%d%H%M%S"))
}

/// Chooses a LoRA adapter for each request.
struct Adapters<'a> {
    names: &'a [String],
    distribution: LoraDistribution,
    weights: Vec<f64>,
    turn: usize,
}

impl<'a> Adapters<'a> {
    fn new(load: &'a LoadPlan) -> Self {
        let weight = |i: usize| load.lora_zipf_alpha.powf(-(i as f64));
        let raw: Vec<f64> = (0..load.lora_names.len()).map(weight).collect();
        let sum: f64 = raw.iter().sum();
        Self {
            names: &load.lora_names,
            distribution: load.lora_distribution,
            weights: raw.into_iter().map(|weight| weight / sum).collect(),
            turn: 0,
        }
    }

    fn next(&mut self, draws: &mut Draws) -> Option<&'a str> {
        if self.names.is_empty() {
            return None;
        }
        let index = match self.distribution {
            LoraDistribution::Uniform => {
                draws.python.choice_index(self.names.len() as u32) as usize
            }
            LoraDistribution::Distinct => self.turn % self.names.len(),
            LoraDistribution::Skewed => draws.numpy.choice_weighted(&self.weights),
        };
        self.turn += 1;
        self.names.get(index).map(String::as_str)
    }
}

/// The warm-up's requests, and where their prompts come from.
///
/// Row 0, as the Python tool sends it, would be found in the prefix cache by the measured row 0,
/// unless the cache is flushed in between. Without a flush the warm-up therefore sends prompts of
/// its own that share nothing with the measured ones, drawn apart from all other draws.
fn warm_up(
    plan: &Plan,
    protocol: &dyn Protocol,
    samples: &[Sample],
    run: &str,
    tokenizer: &Tokenizer,
) -> Result<(Vec<Request>, &'static str), Failure> {
    let adapter = plan.load.lora_names.first().map(String::as_str);
    let Some(first) = samples.first() else { return Ok((Vec::new(), "none")) };
    let mut row = Sample { output_len: first.output_len.min(WARMUP_OUTPUT), ..first.clone() };
    row.extra_body.clear();
    // Each server gets its share of them: by turns, since all are idle.
    let count = plan.load.warmup_requests * (1 + plan.further_base_urls.len());
    let whence = match (count, plan.load.flush) {
        (0, _) => "none",
        (_, Some(_)) => "row_0",
        (_, None) => "separate",
    };
    let mut random = PythonRandom::new(plan.seed ^ WARMUP_SEED);
    let requests = (0..count).map(|id| {
        if whence == "separate"
            && let (Some(pictures), Some(row)) = (&first.pictures, &mut row.pictures)
        {
            // They come before the text, which keeps the places that they have in it.
            let seed = plan.seed ^ WARMUP_SEED.wrapping_add(id as u32);
            row.list = noise_like(&pictures.list, seed).or_code(Code::Data)?;
        } else if whence == "separate" {
            let length = first.prompt_len.max(1) as usize;
            let ids = random.choices_index(tokenizer.vocab_size().max(1), length);
            row.prompt = match first.prompt {
                Prompt::Ids(_) => Prompt::Ids(ids),
                _ => Prompt::Text(tokenizer.decode(&ids, true).or_code(Code::Data)?),
            };
        }
        Ok(Request { conversation: None, ..request(id, protocol, &row, adapter, run) })
    });
    Ok((requests.collect::<Result<_, Failure>>()?, whence))
}

/// SHA-256 over the endpoint and, for each request, due time and body: equal hash, equal workload.
pub(crate) struct PlanHash(Sha256);

impl PlanHash {
    pub(crate) fn new(path: &str) -> Self {
        let mut this = Self(Sha256::new());
        this.field(path.as_bytes());
        this
    }

    pub(crate) fn add(&mut self, request: &Request, due: Stamp) {
        self.field(&due.0.to_le_bytes());
        self.field(&request.body);
        let later =
            request.conversation.iter().flat_map(|conversation| conversation.turns.iter().skip(1));
        later.for_each(|messages| self.field(messages));
        let ends = request.conversation.iter().flat_map(|conversation| &conversation.ends);
        ends.for_each(|end| self.field(&end.tail));
    }

    fn field(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Environment, ServingArgs};

    #[test]
    fn a_plan_whose_bodies_are_not_held_is_the_same_plan() {
        let mut args = ServingArgs::default();
        args.own.simulate = true;
        args.load.request_rate = Some("100".into());
        let mut plan = Plan::new(args, &Environment::default()).unwrap();
        plan.load.lora_names = vec!["one".into(), "two".into()];
        let names = Names { model: "m".into(), served: "m".into() };
        let protocol = plan.backend.protocol(generate_options(&plan, &names));
        let sample = |id: u32| Sample {
            prompt: Prompt::Ids(vec![id; 50]),
            output_len: id,
            ..Sample::default()
        };
        let samples: Arc<[Sample]> = (0..20).map(sample).collect();
        let workload = Workload { plan: &plan, protocol: &protocol, samples: &samples, run: "run" };
        let encode = |most| workload.encode(&mut Draws::new(7), most);
        let (held, hash) = encode(usize::MAX);
        assert!(held.encoder.is_none() && held.requests.iter().all(|r| !r.body.is_empty()));
        for most in [0, 1000] {
            let (ahead, same) = encode(most);
            assert_eq!((same, &ahead.schedule), (hash.clone(), &held.schedule));
            assert!(ahead.requests.iter().all(|request| request.body.is_empty()));
            let encoder = ahead.encoder.unwrap();
            for (index, request) in held.requests.iter().enumerate() {
                assert_eq!(encoder.body(index), request.body);
            }
        }
    }

    #[test]
    fn bodies_go_when_nobody_else_holds_the_requests() {
        let request = Request { body: "body".into(), output_len: 3, ..Request::default() };
        let mut job = Job::burst(vec![request.clone()]);
        let other = job.clone();
        let_bodies_go(&mut job);
        assert_eq!(job.requests[..], *std::slice::from_ref(&request));
        drop(other);
        let_bodies_go(&mut job);
        assert_eq!(job.requests[..], [Request { body: "".into(), ..request }]);
    }
}
