//! Which rows are sent.

use super::args::{ContentArgs, DatasetName, VllmDatasetArgs};
use super::plan::SIMULATED;
use crate::{Failure, Plan};
use servebench_backends::vllm::{Form, VllmBackend};
use servebench_datasets::vllm::{
    CustomOptions, HfOptions, PrefixRepetitionOptions, QuestionOptions, RandomMediaOptions,
    RandomOptions, RerankOptions, ShareGptOptions, SonnetOptions, SpeedBenchSubset,
    TimedTraceOptions, VllmDataset, VllmDatasetOptions,
};

/// What the dataset's flags are read beside.
pub(super) struct Beside<'a> {
    pub(super) content: &'a ContentArgs,
    pub(super) backend: VllmBackend,
    pub(super) simulate: bool,
    pub(super) num_prompts: i64,
    pub(super) seed: u32,
}

impl Beside<'_> {
    /// The rows that the flags ask for, and whether they are sent at their own times.
    pub(super) fn options(
        &self,
        args: VllmDatasetArgs,
        run: &mut Plan,
    ) -> Result<(VllmDatasetOptions, bool), Failure> {
        let dataset = self.dataset(&args)?;
        let name = dataset.name();
        if dataset.is_generated() && args.dataset_path.is_some() {
            return Err(Failure::usage(format!(
                "--dataset-name {name} reads no file: drop --dataset-path"
            )));
        }
        let has_media = match &dataset {
            VllmDataset::Hf(hf) => hf
                .needs_messages(args.dataset_path.as_deref())
                .map_err(|error| Failure::usage(error.to_string()))?,
            other => other.has_media(),
        };
        if has_media && self.backend.info().form == Form::Completions {
            return Err(Failure::usage(format!(
                "--dataset-name {name} has messages with media or tools, which --backend {} does not take",
                self.backend
            ))
            .hint("use --backend openai-chat"));
        }
        let timed = self.timed(&args, &dataset)?;
        self.warn(&args, &dataset, run);
        let chat = self.backend.is_templated_by_server();
        let options = VllmDatasetOptions {
            path: args.dataset_path.filter(|path| !path.as_os_str().is_empty()),
            num_prompts: usize::try_from(self.num_prompts).ok().filter(|n| *n > 0),
            seed: self.seed,
            no_oversample: args.no_oversample,
            disable_shuffle: args.disable_shuffle,
            skip_chat_template: self.content.skip_chat_template || chat,
            chat_template_kwargs: self.content.chat_template_kwargs.clone().unwrap_or_default(),
            ..VllmDatasetOptions::new(dataset)
        };
        Ok((options, timed))
    }

    fn dataset(&self, args: &VllmDatasetArgs) -> Result<VllmDataset, Failure> {
        let length = |own: Option<u32>| match args.output_len {
            None => Ok(own),
            Some(len) => match u32::try_from(len) {
                Ok(len) => Ok(Some(len)),
                Err(_) => Err(Failure::usage(format!("--output-len {len} is no length"))),
            },
        };
        let (input, output) = if self.simulate { (SIMULATED.1, SIMULATED.2) } else { (1024, 128) };
        let input_len = args.input_len.or(args.random_input_len).unwrap_or(input);
        let range_ratio = args.random_range_ratio.unwrap_or_default();
        let batch_size = args.random_batch_size.unwrap_or(1).max(1);
        let (made, asked, trace) = (&args.generated, &args.questions, &args.trace);
        Ok(match args.dataset_name.unwrap_or_default() {
            DatasetName::Random => VllmDataset::Random(RandomOptions {
                input_len,
                output_len: length(args.random_output_len)?.unwrap_or(output),
                range_ratio,
                prefix_len: args.random_prefix_len.unwrap_or(0),
                batch_size,
            }),
            DatasetName::RandomRerank => VllmDataset::RandomRerank(RerankOptions {
                input_len,
                range_ratio,
                batch_size,
                is_reranker: !made.no_reranker,
            }),
            DatasetName::PrefixRepetition => {
                let own = PrefixRepetitionOptions::default();
                VllmDataset::PrefixRepetition(PrefixRepetitionOptions {
                    prefix_len: made.prefix_repetition_prefix_len.unwrap_or(own.prefix_len),
                    suffix_len: made.prefix_repetition_suffix_len.unwrap_or(own.suffix_len),
                    num_prefixes: made.prefix_repetition_num_prefixes.unwrap_or(own.num_prefixes),
                    output_len: length(made.prefix_repetition_output_len)?
                        .unwrap_or(own.output_len),
                })
            }
            DatasetName::ShareGpt => VllmDataset::ShareGpt(ShareGptOptions {
                output_len: length(args.sharegpt_output_len)?,
                prompt_lens: None,
            }),
            DatasetName::RandomMedia => {
                self.random_media(args, length(args.random_output_len)?.unwrap_or(output))?
            }
            DatasetName::Custom => VllmDataset::Custom(custom(args)?),
            DatasetName::CustomImage => VllmDataset::CustomImage {
                rows: custom(args)?,
                client_side_data: args.media.custom_ensure_client_side_data,
            },
            DatasetName::CustomAudio => VllmDataset::CustomAudio(custom(args)?),
            DatasetName::Hf => VllmDataset::Hf(HfOptions {
                name: args.hf.hf_name.clone(),
                subset: args.hf.hf_subset.clone(),
                split: args.hf.hf_split.clone(),
                output_len: length(args.hf.hf_output_len)?,
                messages: self.backend.is_templated_by_server(),
                distance: (
                    args.hf.blazedit_min_distance.unwrap_or(0.0),
                    args.hf.blazedit_max_distance.unwrap_or(1.0),
                ),
                seconds: (
                    args.hf.asr_min_audio_len_sec.filter(|least| *least > 0.0),
                    args.hf.asr_max_audio_len_sec.filter(|most| *most > 0.0 && most.is_finite()),
                ),
                categories: args.hf.bfcl_categories.as_deref().map(parts).unwrap_or_default(),
            }),
            DatasetName::BurstGpt => VllmDataset::BurstGpt { timed: trace.timed() == Some(true) },
            DatasetName::Sonnet => {
                let own = SonnetOptions::default();
                VllmDataset::Sonnet(SonnetOptions {
                    input_len: args.input_len.or(asked.sonnet_input_len).unwrap_or(own.input_len),
                    output_len: length(asked.sonnet_output_len)?.unwrap_or(own.output_len),
                    prefix_len: asked.sonnet_prefix_len.unwrap_or(own.prefix_len),
                })
            }
            DatasetName::SpecBench => VllmDataset::SpecBench(QuestionOptions {
                category: asked.spec_bench_category.clone(),
                output_len: length(asked.spec_bench_output_len)?.unwrap_or(256),
            }),
            DatasetName::SpeedBench => VllmDataset::SpeedBench {
                subset: asked
                    .speed_bench_dataset_subset
                    .as_deref()
                    .and_then(SpeedBenchSubset::from_name)
                    .unwrap_or_default(),
                questions: QuestionOptions {
                    category: asked.speed_bench_category.clone(),
                    output_len: length(asked.speed_bench_output_len)?.unwrap_or(4096),
                },
            },
            DatasetName::TimedTrace => {
                let own = TimedTraceOptions::default();
                let label = |label: &Option<String>, own| label.clone().unwrap_or(own);
                VllmDataset::TimedTrace(TimedTraceOptions {
                    chunk_size: trace.timed_trace_chunk_hash_size.unwrap_or(own.chunk_size),
                    sec_multiplier: trace.timed_trace_sec_multiplier.unwrap_or(own.sec_multiplier),
                    rebase: trace.timed_trace_rebase,
                    timestamp: label(&trace.timed_trace_label_timestamp, own.timestamp),
                    input_length: label(&trace.timed_trace_label_input_length, own.input_length),
                    output_length: label(&trace.timed_trace_label_output_length, own.output_length),
                    hash_ids: label(&trace.timed_trace_label_hash_ids, own.hash_ids),
                })
            }
        })
    }

    fn random_media(
        &self,
        args: &VllmDatasetArgs,
        output_len: u32,
    ) -> Result<VllmDataset, Failure> {
        let media = &args.media;
        let input = if self.simulate { SIMULATED.1 } else { 1024 };
        if args.random_batch_size.is_some_and(|size| size != 1) {
            return Err(Failure::usage("--random-batch-size: not with --dataset-name random-mm"));
        }
        let limit = |kind: &str, own: u32| match &media.random_mm_limit_mm_per_prompt {
            None => Ok(Some(own)),
            Some(limits) => match limits.get(kind) {
                None => Ok(None),
                Some(limit) => {
                    let most = limit.as_u64().and_then(|most| u32::try_from(most).ok());
                    most.map(Some).ok_or_else(|| {
                        Failure::usage(format!(
                            "--random-mm-limit-mm-per-prompt: {limit} is no number of {kind}s"
                        ))
                    })
                }
            },
        };
        Ok(VllmDataset::RandomMedia(RandomMediaOptions {
            input_len: args.input_len.or(args.random_input_len).unwrap_or(input),
            output_len,
            range_ratio: args.random_range_ratio.unwrap_or_default(),
            prefix_len: args.random_prefix_len.unwrap_or(0),
            base_items: media.random_mm_base_items_per_request.unwrap_or(1),
            items_range_ratio: media.random_mm_num_mm_items_range_ratio.unwrap_or(0.0),
            most_images: limit("image", 255)?,
            most_videos: limit("video", 1)?,
            buckets: media.random_mm_bucket_config.clone().unwrap_or_default(),
        }))
    }

    /// Whether requests go by the times of the dataset.
    fn timed(&self, args: &VllmDatasetArgs, dataset: &VllmDataset) -> Result<bool, Failure> {
        let said = args.trace.timed();
        match dataset {
            VllmDataset::TimedTrace(_) if self.backend.info().form != Form::Completions => {
                Err(Failure::usage(format!(
                    "--dataset-name timed_trace has token ids as prompts, which --backend {} does not \
                     take",
                    self.backend
                ))
                .hint("use --backend openai"))
            }
            VllmDataset::TimedTrace(_) => Ok(said.unwrap_or(true)),
            VllmDataset::BurstGpt { timed } => Ok(*timed),
            other if said.is_some() => Err(Failure::usage(format!(
                "--self-timed, --no-self-timed: only with --dataset-name timed_trace or burstgpt, \
                 whose rows have times, not {}",
                other.name()
            ))),
            _ => Ok(false),
        }
    }

    fn warn(&self, args: &VllmDatasetArgs, dataset: &VllmDataset, run: &mut Plan) {
        let chat = self.backend.is_templated_by_server();
        let templated = dataset.is_templated() && !self.content.skip_chat_template;
        let mut warn = |text: String| run.warnings.push(text);
        let name = dataset.name();
        if templated && chat {
            warn(format!(
                "--backend {}: the server applies the chat template, so it is not applied here too",
                self.backend
            ));
        }
        if self.content.chat_template_kwargs.is_some() && (chat || !templated) {
            warn("--chat-template-kwargs does nothing: no template is applied here".to_owned());
        }
        let lengths = "whose rows have lengths of their own";
        let own_lengths =
            matches!(dataset, VllmDataset::BurstGpt { .. } | VllmDataset::TimedTrace(_));
        if args.output_len.is_some() && own_lengths {
            warn(format!("--output-len does nothing with --dataset-name {name}, {lengths}"));
        }
        if matches!(dataset, VllmDataset::PrefixRepetition(_)) && args.dataset_path.is_some() {
            warn(format!("--dataset-path does nothing with --dataset-name {name}"));
        }
        if matches!(dataset, VllmDataset::Sonnet(_)) {
            warn(
                "vllm bench 0.32.0 has no sonnet: these are not the prompts of an earlier one"
                    .to_owned(),
            );
        }
    }
}

/// What stands between commas.
fn parts(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn custom(args: &VllmDatasetArgs) -> Result<CustomOptions, Failure> {
    let output_len = match args.output_len.or(args.custom_output_len) {
        Some(len) => own_length("--custom-output-len", len)?,
        None => Some(256),
    };
    Ok(CustomOptions { output_len })
}

fn own_length(flag: &str, len: i64) -> Result<Option<u32>, Failure> {
    match u32::try_from(len) {
        Ok(len) => Ok(Some(len)),
        Err(_) if len == -1 => Ok(None),
        Err(_) => Err(Failure::usage(format!("{flag} {len} is neither a length nor -1"))),
    }
}
