"""Cases of `make_golden.py` for every data set on every backend that can run it: what is sent, and what is counted.

Pictures on every backend are in `picture_payloads.json`."""

import json

from structured import command

CHAT = ("sglang-oai-chat", "vllm-chat", "lmdeploy-chat")
BACKENDS = ("sglang", "sglang-native", "sglang-oai", "vllm", "lmdeploy", *CHAT, "sglang-embedding", "vllm-embedding", "trt", "truss")
SMALL = ["--random-input-len", "12", "--random-output-len", "4"]
GROUPS = [
    "--gsp-num-groups", "2", "--gsp-prompts-per-group", "2", "--gsp-system-prompt-len", "9", "--gsp-question-len", "5", "--gsp-output-len", "3",
]
# (data set, backends, flags)
DATA = (
    ("sharegpt", BACKENDS, ["--dataset-path", "{FIXTURES}/sharegpt_small.json", "--sharegpt-output-len", "4"]),
    ("custom", BACKENDS, ["--dataset-path", "{FIXTURES}/custom_small.jsonl", "--sharegpt-output-len", "4"]),
    ("random", BACKENDS, ["--dataset-path", "{FIXTURES}/sharegpt_small.json", *SMALL]),
    ("random-ids", BACKENDS, SMALL),
    ("generated-shared-prefix", BACKENDS, GROUPS),
    ("longbench_v2", BACKENDS, ["--dataset-path", "{FIXTURES}/longbench_small.jsonl", "--sharegpt-output-len", "4"]),
    ("speed-bench", BACKENDS, ["--dataset-path", "{FIXTURES}/speed_bench_small.jsonl", "--speed-bench-output-len", "4"]),
    ("openai", CHAT, ["--dataset-path", "{FIXTURES}/openai_small.jsonl", "--sharegpt-output-len", "4"]),
    ("mooncake", ("sglang",), ["--dataset-path", "{FIXTURES}/mooncake_small.jsonl", "--mooncake-slowdown-factor", "0.01"]),
)
COUNTS = ("completed", "total_input_tokens", "total_output_tokens")


def is_generation(entry):
    return entry["method"] == "POST" and entry["path"].split("?")[0].endswith(("/generate", "completions", "embeddings", "generate_stream", ":predict"))


def make_matrix(reference):
    cases = []
    for dataset, backends, flags in DATA:
        for backend in backends:
            run = ["--warmup-requests", "0", "--max-concurrency", "1", "--disable-tqdm", "--output-file", "{DIR}/result.jsonl"]
            # The third row of the requests has no messages, which takes a place of the Python tool's.
            argv = command(dataset, 7, [*run, *flags], backend, 2 if dataset == "openai" else 3)
            reference.server.reset(gap_ms=0)
            (reference.scratch / "result.jsonl").unlink(missing_ok=True)
            status, text = reference.run(argv)
            assert status == 0, (argv, status, text, (reference.scratch / "stderr").read_text())
            sent = [{"path": entry["path"], "body": entry["body"]} for entry in reference.server.log() if is_generation(entry)]
            result = json.loads((reference.scratch / "result.jsonl").read_text().splitlines()[-1])
            counts = {key: result[key] for key in COUNTS}
            case = {"name": f"{dataset}/{backend}", "argv": argv, "counts": counts, "keys": sorted(result)}
            cases.append({**case, "sent": reference.clean(sent, "tiny-llama")})
    return {"cases": cases}, 4


MAKERS = {"matrix": make_matrix}
