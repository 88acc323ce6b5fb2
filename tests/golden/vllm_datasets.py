#!/usr/bin/env python3
"""Records the prompts of `vllm bench serve` for the datasets that make_vllm.py leaves out, into vllm_datasets.json.

    vllm_datasets.py --python VENV/bin/python [--out FILE] [--only NAME ...]

With --only, the cases whose names begin so are made anew, and the others of the file stay.

Each seed is a process of its own whose PYTHONHASHSEED is that seed: what timed_trace sends depends on the hash of text.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import vllm_media

HERE = Path(__file__).resolve().parent
CHAT = vllm_media.CHAT


def cases(seed):
    """(name, tokenizer, flags) of one seed."""
    groups = [
        "--dataset-name", "prefix_repetition", "--prefix-repetition-prefix-len", "12", "--prefix-repetition-suffix-len", "7",
        "--prefix-repetition-num-prefixes", "3", "--prefix-repetition-output-len", "4",
    ]
    for tokenizer in ("bytes", "bos", "drift", "tiny-llama"):
        yield f"prefix_repetition/{tokenizer}/plain", tokenizer, groups
    yield "prefix_repetition/tiny-llama/in-order", "tiny-llama", [*groups, "--disable-shuffle", "--output-len", "2"]
    burst = ["--dataset-name", "burstgpt", "--dataset-path", "{FIXTURES}/vllm_burstgpt.csv"]
    yield "burstgpt/bytes/plain", "bytes", burst
    yield "burstgpt/tiny-llama/plain", "tiny-llama", burst
    yield "burstgpt/tiny-llama/more-than-there-are", "tiny-llama", [*burst, "--num-prompts", "20"]
    rerank = ["--dataset-name", "random-rerank", "--random-input-len", "26"]
    for tokenizer in ("bytes", "bos", "drift", "tiny-llama"):
        yield f"random-rerank/{tokenizer}/plain", tokenizer, rerank
        yield f"random-rerank/{tokenizer}/range", tokenizer, [*rerank, "--random-range-ratio", "0.4", "--random-batch-size", "3"]
    yield "random-rerank/tiny-llama/no-reranker", "tiny-llama", [*rerank, "--no-reranker", "--random-batch-size", "4"]
    trace = ["--dataset-name", "timed_trace", "--dataset-path", "{FIXTURES}/vllm_trace.jsonl", "--timed-trace-sec-multiplier", "0.001"]
    for tokenizer in ("bytes", "bos", "tiny-llama"):
        yield f"timed_trace/{tokenizer}/plain", tokenizer, trace
    yield "timed_trace/tiny-llama/chunks", "tiny-llama", [*trace, "--timed-trace-chunk-hash-size", "10", "--num-prompts", "3"]
    yield "timed_trace/tiny-llama/no-self-timed", "tiny-llama", [*trace, "--no-self-timed"]
    labels = [
        "--dataset-name", "timed_trace", "--dataset-path", "{FIXTURES}/vllm_trace_labels.jsonl", "--timed-trace-label-timestamp", "at",
        "--timed-trace-label-input-length", "in", "--timed-trace-label-output-length", "out", "--timed-trace-label-hash-ids", "blocks",
        "--timed-trace-chunk-hash-size", "4", "--timed-trace-sec-multiplier", "0.1",
    ]
    yield "timed_trace/tiny-llama/labels", "tiny-llama", labels
    spec = ["--dataset-name", "spec_bench", "--dataset-path", "{FIXTURES}/vllm_spec_bench.jsonl"]
    speed = ["--dataset-name", "speed_bench", "--dataset-path", "{FIXTURES}/vllm_speed_bench"]
    yield "spec_bench/tiny-llama/in-order", "tiny-llama", [*spec, "--disable-shuffle", "--num-prompts", "4"]
    yield "speed_bench/tiny-llama/in-order", "tiny-llama", [*speed, "--disable-shuffle", "--num-prompts", "4"]
    media = [
        *CHAT, "--dataset-name", "random-mm", "--random-input-len", "14", "--random-output-len", "3", "--random-mm-bucket-config",
        "{(8, 12, 1): 0.7, (16, 9, 1): 0.3, (16, 9, 4): 0}", "--random-mm-base-items-per-request", "2",
    ]
    yield "random-mm/bytes/plain", "bytes", media
    yield "random-mm/tiny-llama/range", "tiny-llama", [*media, "--random-mm-num-mm-items-range-ratio", "1.0", "--random-range-ratio", "0.4"]
    yield "random-mm/drift/limit", "drift", [
        *media, "--random-mm-num-mm-items-range-ratio", "0.5", "--random-mm-limit-mm-per-prompt", '{"image": 2, "video": 0}',
        "--random-prefix-len", "5", "--enable-multimodal-chat",
    ]
    images = [*CHAT, "--dataset-name", "custom_image", "--dataset-path", "{FIXTURES}/vllm_images.jsonl"]
    yield "custom_image/tiny-llama/plain", "tiny-llama", [*images, "--num-prompts", "3"]
    yield "custom_image/tiny-llama/more-than-there-are", "tiny-llama", [*images, "--custom-output-len", "5", "--enable-multimodal-chat"]
    yield "custom_image/bytes/in-order", "bytes", [*images, "--num-prompts", "-1", "--disable-shuffle"]
    grade_school = ["--dataset-name", "hf", "--dataset-path", "{FIXTURES}/vllm_hf/gsm8k", "--hf-name", "openai/gsm8k", "--hf-subset", "default"]
    yield "hf/tiny-llama/gsm8k-whole", "tiny-llama", [*grade_school, "--no-stream", "--num-prompts", "5"]
    yield "hf/tiny-llama/gsm8k-more-than-there-are", "tiny-llama", [*grade_school, "--no-stream", "--num-prompts", "12", "--hf-output-len", "3"]
    if seed == 0:
        for name, folder, id, more in (
            ("mt-bench", "mt_bench", "philschmid/mt-bench", ["--skip-chat-template"]),
            ("humaneval", "humaneval", "openai/openai_humaneval", []),
            ("aimo", "aimo", "AI-MO/NuminaMath-CoT", []),
            ("aimo-fixed", "aimo", "AI-MO/NuminaMath-1.5", ["--output-len", "4"]),
            ("conversations", "conversations", "Aeala/ShareGPT_Vicuna_unfiltered", ["--hf-split", "train"]),
            ("mlperf", "mlperf", "mgoin/mlperf-inference-llama2-data", []),
            ("mmstar", "mmstar", "Lin-Chen/MMStar", [*CHAT, "--hf-split", "validation"]),
        ):
            flags = ["--dataset-name", "hf", "--dataset-path", "{FIXTURES}/vllm_hf/" + folder, "--hf-name", id, "--disable-shuffle", *more]
            yield f"hf/tiny-llama/{name}", "tiny-llama", flags
    yield from vllm_media.cases(seed)
    if seed == 0:  # The tool shuffles these with seed 0, whatever was said.
        yield "spec_bench/tiny-llama/plain", "tiny-llama", spec
        yield "spec_bench/tiny-llama/category", "tiny-llama", [*spec, "--spec-bench-category", "math", "--num-prompts", "-1"]
        yield "spec_bench/tiny-llama/more-than-there-are", "tiny-llama", [*spec, "--spec-bench-output-len", "7", "--num-prompts", "12"]
        yield "speed_bench/tiny-llama/plain", "tiny-llama", [*speed, "--num-prompts", "5"]
        yield "speed_bench/bytes/category", "bytes", [*speed, "--speed-bench-category", "coding", "--num-prompts", "-1", "--skip-chat-template"]
        yield "speed_bench/tiny-llama/subset", "tiny-llama", [*speed, "--speed-bench-dataset-subset", "throughput_1k", "--speed-bench-output-len", "5"]


def sent(name, entry):
    """What is kept of a call: prompt or form, and the output's length."""
    row = {"id": entry["headers"].get("x-request-id")}
    if "form" in entry:
        fields = {field["name"]: field.get("value", field) for field in entry["form"]}
        length = int(fields.pop("max_completion_tokens"))
        return {"form": fields, "output_len": length, **row}
    body = entry["body"]
    prompt = vllm_media.kept(body["messages"]) if "messages" in body else vllm_media.held(name, body["prompt"])
    length = body["max_completion_tokens"] if "messages" in body else body["max_tokens"]
    return {"prompt": prompt, "output_len": length, **row, **{key: body[key] for key in ("tools", "tool_choice") if key in body}}


def record(seed, out, only):
    import make_vllm as made
    import vllm_backends

    vllm_backends.form = vllm_media.form
    server = made.golden.CaptureServer()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            os.environ["HF_HOME"] = scratch + "/hub"
            fixtures = (HERE.parent / "fixtures").resolve()
            (Path(scratch) / "fixtures").symlink_to(fixtures)
            reference = made.Reference(fixtures, server, Path(scratch))
            from vllm.benchmarks.datasets import datasets as loaded

            vllm_media.offline(loaded)
            recorded = []
            for name, tokenizer, flags in cases(seed):
                if only and not name.startswith(tuple(only)):
                    continue
                server.reset()
                argv = [*made.COMMON, *made.SAVED, "--seed", str(seed), "--request-id-prefix", "r-", "--num-prompts", "8", *flags]
                status, _, result = reference.run(argv, tokenizer)
                assert status == 0, (name, status)
                log = [entry for entry in server.log() if "form" in entry or entry["path"].endswith("completions")]
                rows = [sent(name, entry) for entry in log]
                for row, length in zip(rows, result["input_lens"], strict=True):
                    if "holds" not in row.get("prompt", ()):
                        row["prompt_len"] = length
                rows = reference.clean(rows, tokenizer)
                recorded.append({"name": f"{name}/seed-{seed}", "tokenizer": tokenizer, "argv": argv, "rows": rows})
            out.write_text(json.dumps({"made_with": reference.versions, "cases": recorded}))
    finally:
        server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="the interpreter that has vllm")
    parser.add_argument("--out", type=Path, default=HERE / "vllm_datasets.json")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="begin of the names of the cases to make")
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.seed is not None:
        record(arguments.seed, arguments.out, arguments.only)
        return
    made_with, made = None, []
    if arguments.only:
        kept = json.loads(arguments.out.read_text())["cases"]
        made = [case for case in kept if not case["name"].startswith(tuple(arguments.only))]
    with tempfile.TemporaryDirectory() as scratch:
        for seed in (0, 1, 42):
            part = Path(scratch) / f"{seed}.json"
            command = [arguments.python, __file__, "--python", arguments.python, "--out", part, "--seed", str(seed), "--only", *arguments.only]
            subprocess.run(command, check=True, env={**os.environ, "PYTHONHASHSEED": str(seed)})
            read = json.loads(part.read_text())
            made_with = read["made_with"]
            made += read["cases"]
    body = ",\n".join(json.dumps(case, ensure_ascii=False) for case in made)
    arguments.out.write_text(f'{{"made_with": {json.dumps(made_with)}, "cases": [\n{body}\n]}}\n')
    print(f"{arguments.out}: {len(made)} cases")


if __name__ == "__main__":
    sys.exit(main())
