//! What `generated-shared-prefix` promises beside parity: its shape, its cache, its limits.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

use proptest::prelude::*;
use servebench_core::random::Draws;
use servebench_core::{Counted, Prompt, Sample};
use servebench_datasets::{
    DatasetError, DatasetName, DatasetOptions, Loaded, SharedPrefixOptions, load,
};
use servebench_tokens::{Hub, HubConfig, Tokenizer};
use std::collections::BTreeMap;
use std::path::Path;

fn options(shape: SharedPrefixOptions) -> DatasetOptions {
    DatasetOptions {
        name: DatasetName::SharedPrefix,
        shared_prefix: Some(shape),
        ..DatasetOptions::default()
    }
}

fn run(options: &DatasetOptions, draws: &mut Draws) -> Result<Loaded, DatasetError> {
    let hub = Hub::new(HubConfig { offline: true, ..HubConfig::new("no/such/cache") });
    load(options, &Tokenizer::byte_level(), &hub, draws)
}

fn samples(shape: SharedPrefixOptions) -> Vec<Sample> {
    run(&options(shape), &mut Draws::new(42)).unwrap().samples
}

/// Large enough to be kept: more than 2^18 tokens.
fn large(cache: &Path) -> SharedPrefixOptions {
    SharedPrefixOptions {
        groups: 2,
        prompts_per_group: 2,
        system_prompt_len: 1 << 17,
        question_len: 9,
        cache: Some(cache.to_owned()),
        ..SharedPrefixOptions::default()
    }
}

fn kept(folder: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_kept_set_is_the_made_one_and_draws_what_making_draws() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(large(folder.path()));
    let mut draws = [Draws::new(7), Draws::new(7), Draws::new(7)];
    let made = run(&options, &mut draws[0]).unwrap();
    let files = kept(folder.path());
    assert_eq!((made.samples.len(), files.len()), (4, 1));

    let written = || std::fs::metadata(&files[0]).unwrap().modified().unwrap();
    let before = written();
    let read = run(&options, &mut draws[1]).unwrap();
    assert_eq!((read, &draws[1]), (made.clone(), &draws[0]));
    assert_eq!(written(), before, "made anew");

    std::fs::write(&files[0], "damaged").unwrap();
    let again = run(&options, &mut draws[2]).unwrap();
    assert_eq!((again, &draws[2]), (made, &draws[0]));
    assert_ne!(std::fs::read(&files[0]).unwrap(), b"damaged", "it was not kept anew");
}

#[test]
fn small_sets_and_uncounted_ones_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let large = large(folder.path());
    samples(SharedPrefixOptions { system_prompt_len: 100, ..large.clone() });
    samples(SharedPrefixOptions { fast_prepare: true, ..large.clone() });
    let ids = DatasetOptions { tokenize_prompt: true, ..options(large) };
    run(&ids, &mut Draws::new(1)).unwrap();
    assert_eq!(kept(folder.path()).len(), 0);
}

#[test]
fn a_folder_that_cannot_be_written_costs_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "in the way").unwrap();
    let loaded = run(&options(large(&file)), &mut Draws::new(7)).unwrap();
    assert_eq!(loaded.samples.len(), 4);
    assert!(
        loaded.warnings.concat().starts_with("the data is not kept: "),
        "{:?}",
        loaded.warnings
    );
}

#[test]
fn senseless_shapes_are_refused() {
    let default = SharedPrefixOptions::default;
    for (shape, flag) in [
        (SharedPrefixOptions { groups: 0, ..default() }, "--gsp-num-groups"),
        (SharedPrefixOptions { prompts_per_group: 0, ..default() }, "--gsp-prompts-per-group"),
        (SharedPrefixOptions { turns: 0, ..default() }, "--gsp-num-turns"),
        (SharedPrefixOptions { range_ratio: 1.5, ..default() }, "--gsp-range-ratio"),
        (SharedPrefixOptions { range_ratio: f64::NAN, ..default() }, "--gsp-range-ratio"),
        (SharedPrefixOptions { zipf_alpha: Some(0.0), ..default() }, "--gsp-zipf-alpha"),
        (SharedPrefixOptions { zipf_alpha: Some(f64::INFINITY), ..default() }, "--gsp-zipf-alpha"),
        (SharedPrefixOptions { question_len: 0, turns: 2, ..default() }, "--gsp-question-len"),
        (
            SharedPrefixOptions { groups: u32::MAX, prompts_per_group: 9, ..default() },
            "--gsp-num-groups",
        ),
    ] {
        match run(&options(shape), &mut Draws::new(1)) {
            Err(DatasetError::Option { flag: named, .. }) => assert_eq!(named, flag),
            other => panic!("{flag}: {other:?}"),
        }
    }
    let shape = SharedPrefixOptions { turns: 2, ..default() };
    let ids = DatasetOptions { tokenize_prompt: true, ..options(shape) };
    let error = run(&ids, &mut Draws::new(1)).unwrap_err().to_string();
    assert_eq!(error, "--tokenize-prompt requires --gsp-num-turns=1");
}

#[test]
fn the_first_groups_are_the_hot_ones() {
    let count = |alpha| {
        let shape = SharedPrefixOptions {
            groups: 4,
            prompts_per_group: 250,
            system_prompt_len: 1,
            question_len: 1,
            zipf_alpha: alpha,
            routing_key: true,
            ..SharedPrefixOptions::default()
        };
        let mut counts = BTreeMap::new();
        for sample in samples(shape) {
            *counts.entry(sample.routing_key.unwrap()).or_insert(0) += 1;
        }
        counts.into_values().collect::<Vec<i32>>()
    };
    assert_eq!(count(None), [250; 4]);
    // 1, 1/2, 1/3, 1/4 of their sum are 480, 240, 160 and 120 of a thousand.
    let hot = count(Some(1.0));
    assert_eq!(hot.iter().sum::<i32>(), 1000);
    for (got, want) in hot.iter().zip([480, 240, 160, 120]) {
        assert!((got - want).abs() < 50, "{hot:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn prompts_of_a_group_begin_alike(
        groups in 1..4_u32, each in 1..4_u32, turns in 1..4_u32, system in 0..9_u32,
        ratio in 0.0..=1.0_f64, zipf in prop::option::of(0.1..4.0_f64), ordered: bool, seed: u32,
    ) {
        let shape = SharedPrefixOptions {
            groups, prompts_per_group: each, turns, system_prompt_len: system, question_len: 6,
            output_len: 8, range_ratio: ratio, zipf_alpha: zipf, zipf_seed: seed, ordered,
            routing_key: true, ..SharedPrefixOptions::default()
        };
        let loaded = run(&options(shape), &mut Draws::new(seed)).unwrap();
        prop_assert_eq!(loaded.samples.len(), (groups * each) as usize);
        prop_assert!(loaded.warnings.is_empty());
        let mut systems: BTreeMap<String, String> = BTreeMap::new();
        for sample in loaded.samples {
            prop_assert!((1..=8).contains(&sample.output_len));
            prop_assert_eq!(sample.counted, Counted::Tokenizer);
            let first = match &sample.prompt {
                Prompt::Text(text) => { prop_assert_eq!(turns, 1); text.clone() }
                Prompt::Turns(rounds) => {
                    prop_assert_eq!(rounds.len(), turns as usize);
                    rounds[0][0]["content"].as_str().unwrap().to_owned()
                }
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(sample.prompt_len as usize, first.len(), "a token is a byte here");
            // Random text holds line breaks, too: the prefix is what the group's prompts share.
            let group = sample.routing_key.unwrap();
            let known = systems.entry(group).or_insert_with(|| first.clone());
            let shared = known.bytes().zip(first.bytes()).take_while(|(a, b)| a == b).count();
            let end = known.char_indices().map(|(at, _)| at).filter(|at| *at <= shared).max();
            let end = if shared == known.len() { shared } else { end.unwrap_or(0) };
            known.truncate(end);
            prop_assert!(known.contains("\n\n"), "{:?} does not begin as its group", first);
        }
    }
}
