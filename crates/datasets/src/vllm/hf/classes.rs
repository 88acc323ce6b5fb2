//! What each dataset of the hub is like.

use super::HfOptions;
use super::rows::{Made, dig, distant, edited, filmed, image, pictured, recording, said, talked};
use crate::DatasetError;
use crate::table::Row;
use std::path::Path;

/// How long replies are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// That many tokens, unless `--hf-output-len` says otherwise.
    Fixed(u32),
    /// As long as the row's own, unless `--hf-output-len` says otherwise.
    OfReply,
    /// As long as the row's own.
    OfReplyAlways,
}

/// Which lengths are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// All.
    None,
    /// The usual ones, where the output's length is the row's own.
    Usual,
    /// Up to 2048 tokens of prompt and 32000 in all, where the output's length is the row's own.
    Long,
    /// The usual ones.
    Always,
}

/// The part of a dataset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subset {
    /// There are none, whatever was said.
    Never,
    /// The one that was named, else this one.
    Or(Option<&'static str>),
}

type Make = fn(&Row, &HfOptions, &Path) -> Result<Option<Made>, DatasetError>;

/// A kind of dataset.
#[derive(Debug)]
pub(super) struct Class {
    /// Its names on the hub.
    ids: &'static [&'static str],
    pub(super) split: Option<&'static str>,
    pub(super) subset: Subset,
    pub(super) columns: &'static [&'static str],
    pub(super) length: Length,
    /// Whether prompts go through the chat template.
    pub(super) is_templated: bool,
    pub(super) filter: Filter,
    pub(super) has_media: bool,
    /// Whether its text is what tells a model to transcribe.
    pub(super) is_speech: bool,
    /// Whether the reply is counted without special tokens.
    pub(super) counts_bare_reply: bool,
    pub(super) make: Make,
}

impl Class {
    /// A text dataset of one column, of which the rest can be said.
    const fn plain(
        ids: &'static [&'static str],
        split: &'static str,
        columns: &'static [&'static str],
        output_len: u32,
        make: Make,
    ) -> Self {
        Self {
            ids,
            split: Some(split),
            subset: Subset::Or(None),
            columns,
            length: Length::Fixed(output_len),
            is_templated: true,
            filter: Filter::None,
            has_media: false,
            is_speech: false,
            counts_bare_reply: false,
            make,
        }
    }

    /// The kind of the dataset of that path or name; `None`: the function-calling leaderboard.
    pub(super) fn of(
        path: Option<&Path>,
        name: Option<&str>,
    ) -> Result<Option<&'static Self>, DatasetError> {
        let path = path.and_then(Path::to_str);
        let is = |id: &&str| Some(*id) == path || Some(*id) == name;
        if is(&LEADERBOARD) {
            return Ok(None);
        }
        if let Some(class) = CLASSES.iter().find(|class| class.ids.iter().any(is)) {
            return Ok(Some(class));
        }
        let wrong = |problem| DatasetError::Option { flag: "--hf-name", problem };
        let known: Vec<&str> =
            CLASSES.iter().flat_map(|class| class.ids).copied().chain([LEADERBOARD]).collect();
        let given = name.or(path).unwrap_or("nothing");
        let known = known.join(", ");
        Err(wrong(format!(
            "names which dataset of the hub --dataset-path is a copy of, and {given} is none of \
             {known}"
        )))
    }
}

/// The Berkeley function-calling leaderboard.
const LEADERBOARD: &str = "gorilla-llm/Berkeley-Function-Calling-Leaderboard";

static CLASSES: [Class; 16] = [
    Class {
        subset: Subset::Never,
        is_templated: false,
        has_media: true,
        ..Class::plain(
            &["lmarena-ai/VisionArena-Chat"],
            "train",
            &["conversation", "images"],
            128,
            |row, _, _| pictured(row, "conversation", "0.0.content", "images", "0"),
        )
    },
    Class {
        subset: Subset::Never,
        is_templated: false,
        has_media: true,
        ..Class::plain(
            &["lmarena-ai/vision-arena-bench-v0.1"],
            "train",
            &["turns", "images"],
            128,
            |row, _, _| pictured(row, "turns", "0.0.content", "images", "0"),
        )
    },
    Class {
        subset: Subset::Never,
        is_templated: false,
        has_media: true,
        ..Class::plain(
            &["yale-nlp/MMVU"],
            "validation",
            &["question", "choices", "video"],
            128,
            |row, _, path| filmed(row, path),
        )
    },
    Class::plain(
        &["likaixin/InstructCoder"],
        "train",
        &["input", "instruction"],
        200,
        |row, _, _| {
            let (code, task) = (row.text("input")?, row.text("instruction")?);
            Ok(Some(said(format!("{code}\n\n{task} Reply with nothing but the code."))))
        },
    ),
    Class::plain(&["philschmid/mt-bench"], "train", &["turns"], 256, |row, _, _| {
        Ok(Some(said(dig(row, "turns", "0")?)))
    }),
    Class::plain(&["openai/openai_humaneval"], "test", &["prompt"], 256, |row, _, _| {
        Ok(Some(said(row.text("prompt")?)))
    }),
    Class {
        subset: Subset::Or(Some("main")),
        ..Class::plain(&["openai/gsm8k"], "test", &["question"], 256, |row, _, _| {
            Ok(Some(said(row.text("question")?)))
        })
    },
    Class {
        split: None,
        length: Length::OfReply,
        is_templated: false,
        filter: Filter::Usual,
        has_media: true,
        ..Class::plain(
            &["lmms-lab/LLaVA-OneVision-Data"],
            "",
            &["conversations", "image"],
            0,
            |row, _, _| talked(row, true),
        )
    },
    Class {
        split: None,
        length: Length::OfReply,
        is_templated: false,
        filter: Filter::Usual,
        ..Class::plain(
            &["Aeala/ShareGPT_Vicuna_unfiltered"],
            "",
            &["conversations"],
            0,
            |row, _, _| talked(row, false),
        )
    },
    Class {
        length: Length::OfReply,
        is_templated: false,
        filter: Filter::Long,
        ..Class::plain(
            &["AI-MO/aimo-validation-aime", "AI-MO/NuminaMath-1.5", "AI-MO/NuminaMath-CoT"],
            "train",
            &["problem", "solution"],
            0,
            |row, _, _| {
                let (text, reply) = (row.text("problem")?.to_owned(), row.text("solution")?);
                Ok(Some(Made { text, reply: Some(reply.to_owned()), ..Made::default() }))
            },
        )
    },
    Class {
        length: Length::OfReplyAlways,
        is_templated: false,
        ..Class::plain(
            &["zed-industries/zeta"],
            "train",
            &["events", "input", "output"],
            0,
            |row, _, _| edited(row),
        )
    },
    Class::plain(
        &["vdaita/edit_5k_char", "vdaita/edit_10k_char"],
        "train",
        &["code", "change_request", "norm_distance"],
        4000,
        |row, own, _| distant(row, own),
    ),
    Class {
        length: Length::OfReply,
        filter: Filter::Always,
        counts_bare_reply: true,
        ..Class::plain(
            &["mgoin/mlperf-inference-llama2-data", "mgoin/mlperf-inference-llama3.1-data"],
            "train",
            &["system_prompt", "question", "output"],
            0,
            |row, _, _| {
                Ok(Some(Made {
                    system: Some(row.text("system_prompt")?.to_owned()),
                    text: row.text("question")?.to_owned(),
                    reply: Some(row.text("output")?.to_owned()),
                    ..Made::default()
                }))
            },
        )
    },
    Class {
        subset: Subset::Never,
        is_templated: false,
        has_media: true,
        ..Class::plain(&["Lin-Chen/MMStar"], "val", &["question", "image"], 128, |row, _, _| {
            let question = row.text("question")?;
            let text = question.split("Options:").next().unwrap_or(question).trim().to_owned();
            let media = vec![image(row, row.need("image")?)?];
            Ok(Some(Made { text, media, ..Made::default() }))
        })
    },
    Class {
        is_templated: false,
        has_media: true,
        is_speech: true,
        ..Class::plain(
            &[
                "openslr/librispeech_asr",
                "facebook/voxpopuli",
                "LIUM/tedlium",
                "edinburghcstr/ami",
                "speechcolab/gigaspeech",
                "kensho/spgispeech",
                "D4nt3/esb-datasets-earnings22-validation-tiny-filtered",
            ],
            "train",
            &["audio"],
            1024,
            |row, _, _| {
                let recording = recording(row, row.need("audio")?)?;
                Ok(Some(Made::spoken(recording)))
            },
        )
    },
    Class {
        is_templated: false,
        has_media: true,
        is_speech: true,
        ..Class::plain(
            &["ArtificialAnalysis/Earnings22-Cleaned-AA"],
            "train",
            &["url"],
            1024,
            |row, _, _| {
                let beside = Some(row.text("url")?.to_owned());
                Ok(Some(Made { beside, ..Made::default() }))
            },
        )
    },
];
