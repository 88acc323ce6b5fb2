//! Every kind of file that rows are read from, when it is no such file: an error that names it.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use servebench_core::random::Draws;
use servebench_datasets::vllm::{self, CustomOptions, QuestionOptions, ShareGptOptions};
use servebench_datasets::vllm::{TimedTraceOptions, VllmDataset, VllmDatasetOptions};
use servebench_datasets::{DatasetName, DatasetOptions, load};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::error::Error;
use std::iter::successors;
use std::path::Path;

/// What a file may hold instead of rows, and what is said of it whatever its format.
const BAD: [(&str, &[u8], &str); 13] = [
    ("empty", b"", "is empty"),
    ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "is packed (gzip)"),
    ("zip", b"PK\x03\x04\x14\x00", "is packed (zip)"),
    ("zstd", b"\x28\xb5\x2f\xfd\x04\x00", "is packed (zstd)"),
    ("latin-1", b"[{\"conversations\": [{\"value\": \"caf\xe9\"}]}]", ""),
    ("utf-16", b"\xff\xfe[\0{\0}\0]\0", ""),
    ("cut", b"[{\"conversations\": [{\"val", ""),
    ("blank", b" \n\r\n\t\n", ""),
    ("null", b"null", ""),
    ("number", b"1e400", ""),
    (
        "other fields",
        b"{\"timestamp\": -5, \"input_length\": 1e308, \"turns\": 7, \"prompt\": 5}\n",
        "",
    ),
    ("deep", b"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", ""),
    ("words", b"a,b\nx,y\n", ""),
];

/// An error with what caused it.
fn whole(error: &dyn Error) -> String {
    let chain = successors(Some(error), |&error| error.source());
    chain.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// What each format says of each bad file, through `read`.
fn every_bad_file_is_named<F>(format: &str, read: F)
where
    F: Fn(&Path) -> Result<usize, String>,
{
    let folder = tempfile::tempdir().unwrap();
    for (what, bytes, said) in BAD {
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, bytes).unwrap();
        let error = match read(&path) {
            Ok(rows) => panic!("{format} makes {rows} rows of a file that is {what}"),
            Err(error) => error,
        };
        assert!(error.contains("rows.jsonl"), "{format}, {what}: {error}");
        assert!(error.contains(said), "{format}, {what}: {error}");
    }
    // Its folder, and a file that is not there.
    for path in [folder.path().to_owned(), folder.path().join("none.jsonl")] {
        std::fs::remove_file(folder.path().join("rows.jsonl")).ok();
        let error = read(&path).unwrap_err();
        assert!(error.contains(path.to_str().unwrap()), "{format}: {error}");
    }
}

fn hub() -> Hub {
    Hub::new(HubConfig { offline: true, ..HubConfig::new("no/such/cache") })
}

#[test]
fn every_dataset_of_a_file_names_a_bad_one() {
    use DatasetName::{Image, Mmmu, RandomIds, RandomWords, SharedPrefix};
    let is_generated = |name| matches!(name, RandomIds | RandomWords | SharedPrefix | Image);
    // Without pictures its file is not even opened.
    let is_refused = |name| name == Mmmu && cfg!(not(feature = "images"));
    for name in DatasetName::ALL.into_iter().filter(|&it| !is_generated(it) && !is_refused(it)) {
        every_bad_file_is_named(name.name(), |path| {
            let path = Some(path.to_owned());
            let options =
                DatasetOptions { name, path, num_prompts: 2, ..DatasetOptions::default() };
            let loaded = load(&options, &Tokenizer::byte_level(), &hub(), &mut Draws::new(1));
            loaded.map(|loaded| loaded.samples.len()).map_err(|error| whole(&error))
        });
    }
}

#[test]
fn every_dataset_of_a_file_of_vllm_names_a_bad_one() {
    for dataset in [
        VllmDataset::ShareGpt(ShareGptOptions::default()),
        VllmDataset::Custom(CustomOptions::default()),
        VllmDataset::BurstGpt { timed: false },
        VllmDataset::BurstGpt { timed: true },
        VllmDataset::SpecBench(QuestionOptions { category: None, output_len: 8 }),
        VllmDataset::TimedTrace(TimedTraceOptions::default()),
        VllmDataset::CustomImage { rows: CustomOptions::default(), client_side_data: false },
        VllmDataset::CustomAudio(CustomOptions::default()),
    ] {
        let format = format!("{dataset:?}");
        every_bad_file_is_named(&format, |path| {
            let own = VllmDatasetOptions::new(dataset.clone());
            let skip_chat_template = true;
            let (path, num_prompts) = (Some(path.to_owned()), Some(2));
            let options = VllmDatasetOptions { path, num_prompts, skip_chat_template, ..own };
            let tokenizer = Tokenizer::byte_level();
            let loaded = vllm::load(&options, Some(&tokenizer), &mut Draws::new(1));
            loaded.map(|loaded| loaded.samples.len()).map_err(|error| whole(&error))
        });
    }
}
