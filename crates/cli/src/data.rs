//! From the flags about data to what the loader is told.

use crate::args::{
    AgenticArgs, DatasetArgs, GroupDistribution, ImageArgs, MooncakeArgs, SharedPrefixArgs,
    SpeedBenchArgs,
};
use crate::exit::OrCode;
use crate::{Code, Environment, Failure};
use servebench_backends::{BackendKind, Family};
use servebench_datasets::{
    AgenticOptions, DatasetName, DatasetOptions, ImageOptions, MooncakeOptions,
    SharedPrefixOptions, SpeedBenchOptions,
};
use std::path::PathBuf;

/// What is taken where nothing was typed.
pub(crate) struct DataDefaults {
    pub(crate) name: DatasetName,
    pub(crate) num_prompts: usize,
    pub(crate) input_len: u32,
    pub(crate) output_len: u32,
    pub(crate) range_ratio: f64,
    /// Make random prompts exact.
    pub(crate) exact_lengths: bool,
}

/// Checks and completes what was typed; `warnings` gets what the user should know.
pub(crate) fn dataset_options(
    args: DatasetArgs,
    backend: BackendKind,
    defaults: &DataDefaults,
    environment: &Environment,
    warnings: &mut Vec<String>,
) -> Result<DatasetOptions, Failure> {
    let name = args.dataset_name.unwrap_or(defaults.name);
    if args.tokenize_prompt && backend != BackendKind::Sglang {
        return Err(Failure::usage(format!(
            "--tokenize-prompt works with --backend sglang, not {backend}"
        )));
    }
    let templated = matches!(name, DatasetName::ShareGpt | DatasetName::Custom);
    if args.apply_chat_template && !templated {
        // SGLang's guide has it there.
        warnings.push(format!(
            "--apply-chat-template does nothing with --dataset-name {}: it is for sharegpt and custom",
            name.name()
        ));
    }
    let path = args.dataset_path.filter(|path| !path.as_os_str().is_empty());
    if matches!(
        name,
        DatasetName::Custom
            | DatasetName::OpenAi
            | DatasetName::AgenticTrace
            | DatasetName::SpeedBench
    ) && path.is_none()
    {
        let name = name.name();
        let failure = Failure::usage(format!("--dataset-name {name} needs --dataset-path FILE"));
        return Err(match name {
            "speed-bench" => failure.hint(
                "SPEED-Bench is published without its texts; its own preparation script makes the file",
            ),
            _ => failure,
        });
    }
    let family = backend.info().family;
    // What has to be answered with text, or has images.
    let generates = matches!(name.name(), "mooncake" | "image" | "mmmu");
    if family == Family::Embeddings && generates {
        return Err(Failure::usage(format!(
            "--dataset-name {} cannot be embedded: --backend {backend} returns vectors",
            name.name()
        )));
    }
    let chat = family == Family::Chat;
    if name == DatasetName::OpenAi && !chat {
        return Err(Failure::usage(format!(
            "--dataset-name openai holds chat requests, which --backend {backend} cannot send"
        ))
        .hint("use --backend sglang-oai-chat, vllm-chat or lmdeploy-chat"));
    }
    if name.has_pictures() && !matches!(family, Family::Native | Family::Chat) {
        return Err(Failure::usage(format!(
            "--dataset-name {} has pictures, which --backend {backend} cannot send",
            name.name()
        ))
        .hint("use --backend sglang, sglang-oai-chat, vllm-chat or lmdeploy-chat"));
    }
    if name == DatasetName::SpeedBench && chat {
        warnings.push(format!(
            "--dataset-name speed-bench: the chat template is part of its prompts, as in the Python tool, \
             and the endpoint of --backend {backend} applies it again; --backend sglang sends them as \
             they are meant"
        ));
    }
    let shape = shared_prefix(&args.shared_prefix, args.seed, environment)?;
    let shared_prefix = (name == DatasetName::SharedPrefix).then_some(shape);
    let mut num_prompts = args.num_prompts.unwrap_or(defaults.num_prompts);
    if let Some(shape) = &shared_prefix {
        if args.num_prompts.is_some_and(|asked| asked != shape.prompts()) {
            warnings.push(format!(
                "--num-prompts {num_prompts} does nothing here: --gsp-num-groups times \
                 --gsp-prompts-per-group makes {} requests",
                shape.prompts()
            ));
        }
        num_prompts = shape.prompts();
    }
    let options = DatasetOptions {
        name,
        path,
        num_prompts,
        require_rows: args.require_rows,
        random_input_len: args.random_input_len.unwrap_or(defaults.input_len),
        random_output_len: args.random_output_len.unwrap_or(defaults.output_len),
        random_range_ratio: args.random_range_ratio.unwrap_or(defaults.range_ratio),
        sharegpt_output_len: args.sharegpt_output_len,
        sharegpt_context_len: args.sharegpt_context_len,
        shortest_prompt: None,
        prompt_suffix: args.prompt_suffix.unwrap_or_default(),
        apply_chat_template: args.apply_chat_template && templated,
        tokenize_prompt: args.tokenize_prompt,
        exact_lengths: args.exact_lengths || (defaults.exact_lengths && name.is_random()),
        shared_prefix,
        mooncake: (name == DatasetName::Mooncake).then(|| mooncake(&args.mooncake, chat)),
        agentic: (name == DatasetName::AgenticTrace).then(|| agentic(&args.agentic)),
        speed_bench: (name == DatasetName::SpeedBench).then(|| speed_bench(&args.speed_bench)),
        image: name.has_pictures().then(|| image_options(&args.image, chat)),
    };
    if options.has_turns() && !chat {
        let flag = match name {
            DatasetName::SharedPrefix => "--gsp-num-turns above 1",
            _ => "--dataset-name agentic-trace",
        };
        return Err(Failure::usage(format!(
            "{flag} makes conversations, which --backend {backend} cannot hold"
        ))
        .hint("use --backend sglang-oai-chat, vllm-chat or lmdeploy-chat"));
    }
    options.check().or_code(Code::Usage)?;
    Ok(options)
}

fn shared_prefix(
    args: &SharedPrefixArgs,
    seed: Option<u32>,
    environment: &Environment,
) -> Result<SharedPrefixOptions, Failure> {
    let zipf = args.gsp_group_distribution == GroupDistribution::Zipf;
    if zipf && args.gsp_zipf_alpha.is_none() {
        return Err(Failure::usage("--gsp-group-distribution zipf needs --gsp-zipf-alpha ALPHA"));
    }
    if !zipf && args.gsp_zipf_alpha.is_some() {
        return Err(Failure::usage("--gsp-zipf-alpha needs --gsp-group-distribution zipf"));
    }
    let default = SharedPrefixOptions::default();
    Ok(SharedPrefixOptions {
        groups: args.gsp_num_groups.unwrap_or(default.groups),
        prompts_per_group: args.gsp_prompts_per_group.unwrap_or(default.prompts_per_group),
        system_prompt_len: args.gsp_system_prompt_len.unwrap_or(default.system_prompt_len),
        question_len: args.gsp_question_len.unwrap_or(default.question_len),
        output_len: args.gsp_output_len.unwrap_or(default.output_len),
        range_ratio: args.gsp_range_ratio.unwrap_or(default.range_ratio),
        zipf_alpha: args.gsp_zipf_alpha,
        zipf_seed: seed.unwrap_or(default.zipf_seed),
        turns: args.gsp_num_turns.unwrap_or(default.turns),
        ordered: args.gsp_ordered,
        fast_prepare: args.gsp_fast_prepare,
        routing_key: args.gsp_send_routing_key,
        cache: cache_folder(environment),
    })
}

fn agentic(args: &AgenticArgs) -> AgenticOptions {
    AgenticOptions {
        offset: args.dataset_offset.unwrap_or(0),
        max_turns: args.agentic_max_turns.unwrap_or(0),
    }
}

fn speed_bench(args: &SpeedBenchArgs) -> SpeedBenchOptions {
    SpeedBenchOptions {
        category: args.speed_bench_category.map(Into::into),
        output_len: args.speed_bench_output_len.unwrap_or(SpeedBenchOptions::default().output_len),
    }
}

pub(crate) fn image_options(args: &ImageArgs, messages: bool) -> ImageOptions {
    let default = ImageOptions::default();
    ImageOptions {
        count: args.image_count.unwrap_or(default.count),
        random_count: args.random_image_count,
        resolution: args.image_resolution.unwrap_or(default.resolution),
        format: args.image_format.into(),
        content: args.image_content.into(),
        messages,
    }
}

fn mooncake(args: &MooncakeArgs, messages: bool) -> MooncakeOptions {
    let default = MooncakeOptions::default();
    MooncakeOptions {
        workload: args.mooncake_workload.into(),
        slowdown: args.mooncake_slowdown_factor.unwrap_or(default.slowdown),
        rounds: args.mooncake_num_rounds.unwrap_or(default.rounds),
        messages,
    }
}

/// Where generated data is kept: `XDG_CACHE_HOME`, else `HOME/.cache`; nowhere without either.
pub(crate) fn cache_folder(environment: &Environment) -> Option<PathBuf> {
    let base = match environment.get("XDG_CACHE_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(environment.get("HOME")?).join(".cache"),
    };
    Some(base.join("servebench"))
}
