//! From what was typed to what is done: validated, serializable, no I/O.

use super::args::{BatchBackend, OneBatchArgs};
use crate::Failure;
use crate::args::{Address, AddressArgs, LoraDistribution};
use crate::data::image_options;
use serde::Serialize;
use servebench_datasets::{DatasetName, ImageOptions};
use std::path::PathBuf;

/// Upstream's own address.
const HOST: &str = "127.0.0.1";

/// One case of the sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Case {
    pub(super) batch_size: u32,
    pub(super) input_len: u32,
    pub(super) output_len: u32,
}

impl Case {
    /// The warm-up of a batch size.
    pub(super) const fn warmup(batch_size: u32) -> Self {
        Self { batch_size, input_len: 1024, output_len: 16 }
    }
}

/// Where prompts come from.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Source {
    /// The text of a file, for every prompt.
    File(PathBuf),
    /// A dataset.
    Dataset { name: DatasetName, path: Option<PathBuf> },
}

/// All that a run does.
#[derive(Clone, Debug, Serialize)]
pub struct OneBatchPlan {
    /// Where the server is.
    pub(super) base_url: String,
    /// The flag that says so.
    pub(super) address_flag: &'static str,
    pub(super) simulate: bool,
    pub(super) backend: BatchBackend,
    pub(super) launch: Option<String>,
    pub(super) launch_timeout: u32,
    pub(super) model_path: Option<String>,
    pub(super) tokenizer: Option<String>,
    /// Dollars for an hour of the whole server.
    pub(super) hourly_cost: f64,
    pub(super) batch_size: Vec<u32>,
    pub(super) input_len: Vec<u32>,
    pub(super) output_len: Vec<u32>,
    /// Lengths within a batch, in turn.
    pub(super) input_len_list: Vec<u32>,
    pub(super) multi_batch: bool,
    pub(super) check_capacity: bool,
    pub(super) warmup: bool,
    pub(super) source: Source,
    pub(super) chat_template: bool,
    pub(super) gsp_num_groups: u32,
    pub(super) gsp_system_prompt_len: u32,
    pub(super) gsp_question_len: u32,
    pub(super) gsp_output_len: u32,
    /// The pictures of `image`.
    pub(super) image: ImageOptions,
    pub(super) cache_hit_rate: f64,
    pub(super) seed: u32,
    pub(super) temperature: f64,
    pub(super) ignore_eos: bool,
    pub(super) return_logprob: bool,
    pub(super) stream_interval: u32,
    pub(super) parallel_batch: bool,
    pub(super) fake_prefill: bool,
    pub(super) flush_hicache_storage: bool,
    pub(super) lora_name: Vec<String>,
    pub(super) lora_request_distribution: LoraDistribution,
    pub(super) lora_zipf_alpha: f64,
    pub(super) run_name: String,
    pub(super) result_file: Option<PathBuf>,
    pub(super) structured_file: Option<PathBuf>,
    pub(super) server_args_for_metrics: Vec<String>,
    pub(super) show_report: bool,
    pub(super) append_to_github_summary: bool,
    pub(super) profile: Option<ProfilePass>,
    /// What the user should know.
    pub(super) warnings: Vec<String>,
}

/// The profiled pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct ProfilePass {
    pub(super) activities: Vec<String>,
    pub(super) start_step: Option<u64>,
    pub(super) steps: u64,
    pub(super) by_stage: bool,
    pub(super) prefix: Option<String>,
    pub(super) output_dir: Option<String>,
}

impl OneBatchPlan {
    /// Checks and completes what was typed.
    ///
    /// # Errors
    ///
    /// A usage failure that names the flag.
    pub fn new(args: OneBatchArgs) -> Result<Self, Failure> {
        let OneBatchArgs { server, sweep, prompts, request, output, profile } = args;
        let mut warnings = Vec::new();
        let (base_url, address_flag) = address(&server, &mut warnings)?;
        let backend = server.backend;
        let or = |list: Vec<u32>, default| if list.is_empty() { vec![default] } else { list };
        let input_len = or(sweep.input_len, 1024);

        let fixed = prompts.fixed_prompt_file.filter(|path| !path.as_os_str().is_empty());
        let simulate = server.address.connection.simulate;
        let name = prompts.dataset_name;
        let default = if simulate { DatasetName::RandomIds } else { DatasetName::Random };
        let path = prompts.dataset_path.filter(|path| !path.as_os_str().is_empty());
        let source = match fixed {
            Some(path) => Source::File(path),
            None => Source::Dataset { name: name.unwrap_or(default), path },
        };
        if let Some(name) = name.filter(|name| name.has_pictures())
            && backend == BatchBackend::Vllm
        {
            let name = name.name();
            return Err(wrong(format!(
                "--dataset-name {name} needs --backend sglang: vLLM's completions take no pictures"
            )));
        }
        let replayed = name.filter(|name| is_replay(*name));
        if let Some(name) = replayed {
            let name = name.name();
            if matches!(source, Source::File(_)) {
                return Err(wrong(format!(
                    "--fixed-prompt-file and --dataset-name {name} exclude each other"
                )));
            }
            if input_len.len() > 1 {
                return Err(wrong(format!(
                    "--input-len takes one value with --dataset-name {name}, whose prompts have \
                     lengths of their own (it is used for the capacity check alone)"
                )));
            }
            warnings.push(format!(
                "{name}: prompts have lengths of their own; the capacity check takes --input-len \
                 ({}) for each, so set that near their mean",
                input_len[0]
            ));
        }
        if let Source::Dataset { name: DatasetName::Custom, path: None } = &source {
            return Err(wrong("--dataset-name custom needs --dataset-path FILE"));
        }
        let chattable = matches!(source, Source::File(_)) || replayed.is_some();
        if prompts.apply_chat_template && !chattable {
            return Err(wrong(
                "--apply-chat-template needs --fixed-prompt-file, or --dataset-name sharegpt or \
                 custom: other prompts are token ids, not text",
            ));
        }
        let input_len_list = lengths(sweep.input_len_list.as_deref().unwrap_or_default())?;
        if !input_len_list.is_empty() {
            let random = matches!(&source, Source::Dataset { name, .. } if name.is_random());
            if !random {
                return Err(wrong(
                    "--input-len-list works with --dataset-name random and random-ids only",
                ));
            }
            if input_len.len() > 1 {
                return Err(wrong("--input-len-list goes with one --input-len at most"));
            }
        }
        if sweep.input_len_step_percentage.is_some_and(|share| share != 0.0) {
            return Err(wrong(
                "--input-len-step-percentage is read by upstream and used for nothing: leave it out \
                 (--input-len-list makes prompts of different lengths)",
            ));
        }
        if !(0.0..=1.0).contains(&prompts.cache_hit_rate) {
            let rate = prompts.cache_hit_rate;
            return Err(wrong(format!("--cache-hit-rate must be from 0 to 1, not {rate}")));
        }
        if !request.temperature.is_finite() || request.temperature < 0.0 {
            return Err(wrong(format!(
                "--temperature must be 0 or more, not {}",
                request.temperature
            )));
        }
        check_request(&request, backend)?;
        if profile.profile && backend == BatchBackend::Vllm {
            return Err(wrong(
                "--profile needs --backend sglang: vLLM is told what to profile at its start",
            )
            .hint("`profiler --url URL --duration SECONDS` profiles a vLLM server"));
        }
        let profile = profile.profile.then_some(ProfilePass {
            activities: profile.profile_activities.iter().map(|name| name.to_uppercase()).collect(),
            start_step: profile.profile_start_step,
            steps: profile.steps.profile_steps,
            by_stage: profile.steps.profile_by_stage,
            prefix: profile.steps.profile_prefix,
            output_dir: profile.steps.profile_output_dir,
        });
        Ok(Self {
            base_url,
            address_flag,
            simulate,
            backend,
            launch: server.launch,
            launch_timeout: server.launch_timeout,
            model_path: server.model_path,
            tokenizer: server.local_tokenizer_path.filter(|path| !path.is_empty()),
            hourly_cost: server.hourly_cost.unwrap_or(2.0) * f64::from(server.tp_size),
            batch_size: or(sweep.batch_size, 1),
            input_len,
            output_len: or(sweep.output_len, 16),
            input_len_list,
            multi_batch: sweep.enable_multi_batch,
            check_capacity: !sweep.skip_token_capacity_check,
            warmup: !sweep.skip_warmup,
            source,
            chat_template: prompts.apply_chat_template,
            gsp_num_groups: prompts.gsp_num_groups,
            gsp_system_prompt_len: prompts.gsp_system_prompt_len,
            gsp_question_len: prompts.gsp_question_len,
            gsp_output_len: prompts.gsp_output_len,
            image: image_options(&prompts.image, false),
            cache_hit_rate: prompts.cache_hit_rate,
            seed: prompts.seed,
            temperature: request.temperature,
            ignore_eos: !request.disable_ignore_eos,
            return_logprob: request.return_logprob,
            stream_interval: request.client_stream_interval,
            parallel_batch: request.parallel_batch,
            fake_prefill: request.fake_prefill,
            flush_hicache_storage: request.flush_hicache_storage,
            lora_name: request.lora_name,
            lora_request_distribution: request.lora_request_distribution,
            lora_zipf_alpha: request.lora_zipf_alpha,
            run_name: output.run_name,
            result_file: (!output.result_filename.is_empty())
                .then(|| output.result_filename.into()),
            structured_file: output.pydantic_result_filename,
            server_args_for_metrics: output.server_args_for_metrics,
            show_report: output.show_report,
            append_to_github_summary: !output.no_append_to_github_summary,
            profile,
            warnings,
        })
    }

    /// The cases in the order in which they run.
    pub(super) fn cases(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for &batch_size in &self.batch_size {
            for &input_len in &self.input_len {
                for &output_len in &self.output_len {
                    cases.push(Case { batch_size, input_len, output_len });
                }
            }
        }
        cases
    }

    /// Whether prompts are recorded ones.
    pub(super) fn is_replay(&self) -> bool {
        matches!(&self.source, Source::Dataset { name, .. } if is_replay(*name))
    }
}

fn is_replay(name: DatasetName) -> bool {
    matches!(name, DatasetName::ShareGpt | DatasetName::Custom)
}

fn wrong(message: impl std::fmt::Display) -> Failure {
    Failure::usage(message)
}

/// What cannot be asked together, or not of this server.
fn check_request(
    request: &super::args::BatchRequestArgs,
    backend: BatchBackend,
) -> Result<(), Failure> {
    let sglang_only = [
        ("--client-stream-interval", request.client_stream_interval != 1),
        ("--parallel-batch", request.parallel_batch),
        ("--fake-prefill", request.fake_prefill),
        ("--flush-hicache-storage", request.flush_hicache_storage),
        ("--lora-name", !request.lora_name.is_empty()),
    ];
    if backend == BatchBackend::Vllm
        && let Some((flag, _)) = sglang_only.iter().find(|(_, given)| *given)
    {
        let reason = match *flag {
            "--lora-name" => "vLLM takes an adapter as the model",
            _ => "vLLM has no such thing",
        };
        return Err(wrong(format!("{flag} needs --backend sglang: {reason}")));
    }
    if request.disable_ignore_eos && request.fake_prefill {
        return Err(wrong(
            "--disable-ignore-eos and --fake-prefill exclude each other: where a reply ends means \
             nothing when its prompt was made up",
        ));
    }
    if request.disable_ignore_eos && request.client_stream_interval != 1 {
        return Err(wrong(
            "--disable-ignore-eos needs --client-stream-interval 1: with fewer events the counts at \
             the ends of the steady window are not known",
        ));
    }
    let several = request.lora_request_distribution != LoraDistribution::Uniform;
    if several && request.lora_name.len() < 2 {
        return Err(wrong(
            "--lora-request-distribution distinct and skewed need two or more --lora-name",
        ));
    }
    let alpha = request.lora_zipf_alpha;
    if !alpha.is_finite() || alpha <= 1.0 {
        return Err(wrong(format!("--lora-zipf-alpha must be above 1, not {alpha}")));
    }
    Ok(())
}

/// Where the server is, and the flag that says so.
fn address(
    args: &super::args::BatchServerArgs,
    warnings: &mut Vec<String>,
) -> Result<(String, &'static str), Failure> {
    if args.address.connection.simulate && args.launch.is_some() {
        return Err(AddressArgs::is_simulated("--launch"));
    }
    if args.launch.as_deref().is_some_and(|command| command.trim().is_empty()) {
        return Err(wrong("--launch needs a command"));
    }
    let Address { url, flag, ignores_host } = args.address.address(HOST)?;
    if ignores_host {
        warnings.push("--host and --port do nothing: --base-url is given".into());
    }
    Ok((url, flag))
}

/// The numbers of a comma list.
fn lengths(list: &str) -> Result<Vec<u32>, Failure> {
    if list.trim().is_empty() {
        return Ok(Vec::new());
    }
    let length = |word: &str| word.trim().parse::<u32>().ok().filter(|length| *length > 0);
    let all: Option<Vec<u32>> = list.split(',').map(length).collect();
    all.ok_or_else(|| {
        wrong(format!("--input-len-list takes whole numbers above 0 between commas, not '{list}'"))
    })
}
