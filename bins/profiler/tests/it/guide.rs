//! The commands of SGLang's guide on profiling, and what stands there as curl.

use clap::Parser;
use profiler::{Profile, Start};

#[track_caller]
fn profile(words: &str) -> Profile {
    let line = ["profiler"].into_iter().chain(words.split_whitespace());
    Profile::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn start(words: &str) -> Start {
    let line = ["profiler start"].into_iter().chain(words.split_whitespace());
    Start::try_parse_from(line).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_guides_commands_are_understood() {
    // python3 -m sglang.profiler
    profile("");
    // python -m sglang.profiler --num-steps 10 --cpu --gpu --output-dir … --merge-profiles
    let merged = profile("--num-steps 10 --cpu --gpu --output-dir /tmp/profiles --merge-profiles");
    assert_eq!(merged.what.num_steps, Some(10));
    assert!(merged.what.cpu && merged.what.gpu && merged.what.merge_profiles);
    assert_eq!(merged.what.output_dir.as_deref(), Some("/tmp/profiles"));
}

#[test]
fn what_the_guide_does_with_curl_has_a_command() {
    assert_eq!(start("--num-steps 10").what.num_steps, Some(10));
    let late =
        start("--output-dir /tmp/profiles --start-step 5 --num-steps 10 --activities CPU GPU");
    assert_eq!((late.what.start_step, late.what.activities.len()), (Some(5), 2));
    start("");
    let detailed = start("--num-steps 10 --activities CPU GPU --detailed-annotations");
    assert!(detailed.what.detailed_annotations);
    start("--start-step 3");
    start("--output-dir /tmp/profiles --num-steps 10 --activities CPU GPU --merge-profiles");
    let nsys = start("--start-step 3 --num-steps 10 --activities CUDA_PROFILER");
    assert_eq!(nsys.what.activities, ["CUDA_PROFILER"]);
}
