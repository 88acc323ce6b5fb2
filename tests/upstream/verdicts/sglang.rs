//! What is said about SGLang's flags.

use super::Table;
use crate::Difference::{Arity, Default, Fewer, More};

pub(super) const BENCH_SERVING: Table = &[
    (
        "--agentic-max-turns",
        &[],
        "better: each turn has its own metrics, and input tokens are counted",
    ),
    (
        "--apply-chat-template",
        &[],
        "better: only the leading BOS is taken away, and a data set that has no use for it is said in a warning",
    ),
    (
        "--backend",
        &[Fewer],
        "better: every backend takes every data set that it can carry. `gserver` is refused: upstream never wrote it",
    ),
    (
        "--base-url",
        &[],
        "better: one rule for trailing slashes, path prefixes and `/v1`; `unix:PATH` too",
    ),
    (
        "--dataset-name",
        &[More],
        "better: bad rows are counted and said; `random-words` are prompts of exact lengths",
    ),
    (
        "--dataset-path",
        &[],
        "better: a path that is not there is an error (exit 3), never a download in its place",
    ),
    ("--disable-stream", &[], "better: for `trt` too"),
    ("--extra-request-body", &[], "better: what is no JSON object is a usage error"),
    (
        "--flush-cache",
        &[],
        "better: a refusal is retried, then stops the run: a warm cache would be measured",
    ),
    ("--gsp-fast-prepare", &[], "better: prompts count with the length asked for, not with 1"),
    (
        "--header",
        &[],
        "better: sent with every call; an item without `=` is a usage error, not dropped",
    ),
    (
        "--image-content",
        &[],
        "better: anything but `random` and `blank` is a usage error, not noise",
    ),
    ("--image-format", &[], "better: anything but `jpeg` and `png` is a usage error"),
    ("--image-resolution", &[], "better: the bounds of `random:` may be names such as 1080p"),
    ("--lora-zipf-alpha", &[], "better: checked only where it is used"),
    (
        "--max-concurrency",
        &[],
        "better: exact and first come first served; a negative one is a usage error",
    ),
    (
        "--mooncake-num-rounds",
        &[],
        "better: refused when the prompts would not fit in memory, before the run",
    ),
    ("--mooncake-workload", &[], "better: `agent`, as SGLang's guide has it, is `toolagent`"),
    (
        "--num-prompts",
        &[],
        "better: 0 is a usage error; where the data are fewer, or the data set has its own number, a warning says so",
    ),
    ("--output-file", &[], "better: known to be writable before the run; one append, one write"),
    ("--output-details", &[], "better: one entry for each request, failed ones too"),
    ("--pd-separated", &[], "better: what a worker refuses is said, and the run goes on"),
    ("--plot-throughput", &[], "better: needs neither termplotlib nor gnuplot"),
    (
        "--port",
        &[],
        "better: 8000 for `vllm-chat`, 23333 for `lmdeploy-chat`, as their servers have it",
    ),
    (
        "--profile-by-stage",
        &[],
        "better: always with a number of steps, without which the server's scheduler breaks; no stop call after it",
    ),
    ("--profile-num-steps", &[], "better: the same as `--profile-steps`; a number on the wire"),
    (
        "--profile-stages",
        &[],
        "better: only `prefill` and `decode` are taken, with `--profile-by-stage`",
    ),
    ("--profile-start-step", &[], "better: a number on the wire, as the server's schema has it"),
    ("--profile-steps", &[], "better: a number on the wire, as the server's schema has it"),
    ("--random-range-ratio", &[], "better: outside 0 to 1 is a usage error"),
    ("--ready-check-timeout-sec", &[], "better: `trt` and `truss` are asked where they answer"),
    (
        "--request-rate",
        &[],
        "better: 0 or less is a usage error; `inf` is the string `\"inf\"` in the result",
    ),
    (
        "--rust-client",
        &[],
        "taken: every run is sent by a native client, with all backends, data sets and flags",
    ),
    ("--rust-worker-threads", &[], "the same as `--workers`"),
    ("--temperature", &[], "better: sent on OpenAI routes and to `trt` too"),
    (
        "--tokenizer",
        &[],
        "better: without Python and its remote code; a folder, a `tokenizer.json` or a hub name",
    ),
    ("--top-p", &[], "better: sent on OpenAI routes and to `trt` too"),
    (
        "--use-trace-timestamps",
        &[Arity],
        "better: requests are sent at their rows' times, which upstream only says; `true` and `false` may follow",
    ),
    (
        "--warmup-requests",
        &[],
        "better: prompts of their own where no flush follows, so that no measured prompt is in the cache",
    ),
];

pub(super) const STEADY_STATE_SERVING: Table = &[
    (
        "--steady-state-concurrency-ratio",
        &[],
        "better: a flag of `bench-serving`, whose result has the steady state too",
    ),
    ("--steady-state-output-file", &[], "same, as a flag of `bench-serving`"),
];

pub(super) const BENCH_ONE_BATCH_SERVER: Table = &[
    ("--dataset-name", &[], "better: `random-words` too, of exact lengths and from no file"),
    (
        "--input-len-step-percentage",
        &[Default],
        "taken when 0: upstream reads any other number and does nothing with it, which is refused here",
    ),
    (
        "--profile",
        &[],
        "better: the profiled pass is not in the result file, where it would look like a measurement",
    ),
];

pub(super) const PROFILER: Table = &[
    ("--num-steps", &[], "better: a number on the wire; it waits for the traces and lists them"),
    ("--url", &[Arity], "better: several workers, one after the other"),
];

pub(super) const SEND_ONE: Table = &[
    ("--host", &[Default], "same: `localhost`"),
    ("--prompt", &[Default], "better: a prompt of our own, of the same kind"),
    ("--stream", &[], "better: with `--batch-size` too"),
];
