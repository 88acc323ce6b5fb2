//! What is said about the flags of `vllm bench`.

use super::Table;
use crate::Difference::{Default, Fewer, More};

pub(super) const SERVE: Table = &[
    (
        "--append-result",
        &[],
        "better: one result a line, strict JSON; a file that cannot be written is found before the run",
    ),
    (
        "--custom-output-len",
        &[],
        "better: -1 takes each row's own length, and its absence is an error",
    ),
    (
        "--dataset-name",
        &[More],
        "better: `sonnet` too, as vLLM's guide has it; bad rows are counted and said",
    ),
    ("--disable-tqdm", &[], "same: there are no bars of tqdm's, but there is progress"),
    (
        "--enable-multimodal-chat",
        &[],
        "taken, without effect, and said so: media always go into the messages",
    ),
    (
        "--endpoint",
        &[Default],
        "better: left out it is the backend's own; a wrong one is a usage error before any work",
    ),
    (
        "--goodput",
        &[],
        "better: read before the run; a name that is not known or a negative time is a usage error",
    ),
    ("--hf-output-len", &[], "better: for every class of `hf`"),
    ("--logprobs", &[], "better: that another backend than completions has no use for it is said"),
    (
        "--max-concurrency",
        &[],
        "better: exact and first come first served; 0 or less is a usage error",
    ),
    (
        "--num-prompts",
        &[],
        "better: 0 or less takes all rows of every file, not only of the custom ones",
    ),
    (
        "--num-warmups",
        &[],
        "better: prompts of their own, so that no measured prompt is in the cache",
    ),
    (
        "--output-len",
        &[],
        "better: for every dataset whose rows have no length of their own, `speed_bench` too",
    ),
    ("--percentile-metrics", &[], "better: a name that is not known is a usage error"),
    (
        "--plot-dataset-stats",
        &[],
        "better: an SVG that needs no Python library; a name is found without `--save-result` too",
    ),
    (
        "--plot-timeline",
        &[],
        "better: one page that works without a network and stays small at 100000 requests",
    ),
    (
        "--probe-request-rate",
        &[],
        "better: probes have connections of their own, keep their rate and do not stretch the run",
    ),
    ("--profile", &[], "better: a server that refuses is said, and the run goes on"),
    ("--ramp-up-end-rps", &[], "better: fractions too"),
    ("--ramp-up-start-rps", &[], "better: fractions too, and 0 for `linear`"),
    ("--ready-check-timeout-sec", &[], "better: the server is asked with a prompt of its own"),
    (
        "--request-id-prefix",
        &[Default],
        "same: `bench-`, 8 random digits and `-`, drawn for each run",
    ),
    ("--self-timed", &[], "better: for `burstgpt` too, whose rows have times"),
    (
        "--skip-chat-template",
        &[],
        "better: for `spec_bench` too; no template on backends whose server applies it",
    ),
    (
        "--tokenizer-mode",
        &[],
        "`auto` and `hf`: only `tokenizer.json` is read; others are taken with a warning",
    ),
    (
        "--trust-remote-code",
        &[],
        "taken, without effect, and said so: no code from a hub is run here",
    ),
    ("--use-beam-search", &[], "taken, without effect, and said so: upstream does not say it"),
];

/// Of `serve` and `throughput`.
pub(super) const DATA: Table = &[(
    "--dataset-path",
    &[],
    "better: a path that is not there is an error (exit 3); for `hf` a local copy too",
)];

pub(super) const THROUGHPUT: Table = &[
    (
        "--backend",
        &[Default, Fewer, More],
        "better: `vllm` and `vllm-chat` are the routes of a server, and so are the other backends of `serve` \
         that make tokens; `hf` and `mii`, which run a model in the Python process, are refused",
    ),
    ("--custom-output-len", &[Default], "better: left out it is what `serve` has"),
    (
        "--dataset-name",
        &[Default, More],
        "better: those of `serve`; left out it is `sharegpt` with a file and `random` without, as upstream \
         does it, and a name without its file is an error",
    ),
    ("--input-len", &[], "better: it reaches random data, which upstream leaves at 1024"),
    ("--n", &[], "same: that many replies to each prompt"),
    (
        "--num-warmups",
        &[],
        "better: prompts of their own, so that no measured prompt is in the cache",
    ),
    ("--output-len", &[], "better: it reaches random data, which upstream leaves at 128"),
    ("--prefix-len", &[Default], "better: it reaches random data, as `--random-prefix-len` does"),
    ("--prefix-repetition-num-prefixes", &[Default], "better: left out it is what `serve` has"),
    ("--prefix-repetition-output-len", &[Default], "better: left out it is what `serve` has"),
    ("--prefix-repetition-prefix-len", &[Default], "better: left out it is what `serve` has"),
    ("--prefix-repetition-suffix-len", &[Default], "better: left out it is what `serve` has"),
    (
        "--profile",
        &[],
        "better: profiled and measured; upstream's figures of it are the profiler's",
    ),
];

pub(super) const LATENCY: Table = &[(
    "--profile",
    &[],
    "better: the measured batches are profiled; upstream profiles one and measures nothing",
)];

pub(super) const SWEEP: Table = &[
    (
        "--bench-cmd",
        &[],
        "better: `vllm bench …` and `bench-vllm …` are this program; a client that fails is said where it fails",
    ),
    ("--bench-params", &[], "better: `--key=value` in a command is replaced too"),
    ("--link-vars", &[], "better: no server is started for which nothing is to be measured"),
    ("--output-dir", &[], "better: known to be writable before a server is started"),
    (
        "--resume",
        &[],
        "better: goes by each run, not by the summary of several; no server is started when all are there",
    ),
    (
        "--serve-cmd",
        &[],
        "better: waited for to its end, its children too; `sim-server` is known; a server that answers \
         already is refused",
    ),
    ("--serve-params", &[], "better: `--key=value` in a command is replaced too"),
];

pub(super) const PLOT: Table = &[
    (
        "--fig-dpi",
        &[Default],
        "taken, without effect, and said so: pictures are SVG, sharp at any size",
    ),
    ("--scale-x", &[], "better: `linear`, `log` or `sqrt`; another one is a usage error"),
    ("--scale-y", &[], "better: `linear`, `log` or `sqrt`; another one is a usage error"),
];

pub(super) const PLOT_PARETO: Table =
    &[("--dry-run", &[], "better: writes nothing, not even the folder")];
