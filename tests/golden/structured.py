"""Cases of `make_golden.py` for the data sets whose rows have more than a prompt: groups, traces, whole requests,
conversations. The data files are in `tests/fixtures`."""

import json
import os
import shutil
from pathlib import Path

SEEDS = (1, 42, 2026)


def command(dataset, seed, flags, backend="sglang", count=6):
    return [
        "--backend", backend, "--model", "tiny", "--tokenizer", "{TOKENIZER}", "--ready-check-timeout-sec", "0", "--base-url", "{URL}",
        "--dataset-name", dataset, "--num-prompts", str(count), "--seed", str(seed), *flags,
    ]


# ---------------------------------------------------------------- prefixes.json


def prefix_cases():
    """(name, tokenizer, flags) without the seed."""
    small = [
        "--gsp-num-groups", "3", "--gsp-prompts-per-group", "4", "--gsp-system-prompt-len", "20", "--gsp-question-len", "7",
        "--gsp-output-len", "9",
    ]
    zipf = ["--gsp-group-distribution", "zipf", "--gsp-zipf-alpha"]
    for tokenizer in ("tiny-llama", "bytes", "bos", "drift"):
        yield f"{tokenizer}/plain", tokenizer, small
        yield f"{tokenizer}/token-ids", tokenizer, [*small, "--tokenize-prompt"]
    for ratio in ("0.0", "0.5"):
        yield f"tiny-llama/ratio-{ratio}", "tiny-llama", [*small, "--gsp-range-ratio", ratio]
    yield "tiny-llama/ordered", "tiny-llama", [*small, "--gsp-ordered"]
    yield "tiny-llama/routing-key", "tiny-llama", [*small, "--gsp-send-routing-key"]
    yield "tiny-llama/zipf", "tiny-llama", [*small, *zipf, "1.2"]
    yield "tiny-llama/zipf-steep", "tiny-llama", [*small, "--gsp-num-groups", "7", *zipf, "3", "--gsp-ordered", "--gsp-send-routing-key"]
    yield "tiny-llama/zipf-token-ids", "tiny-llama", [*small, *zipf, "0.4", "--tokenize-prompt", "--gsp-range-ratio", "0.3"]
    yield "tiny-llama/fast", "tiny-llama", [*small, "--gsp-fast-prepare"]
    yield "tiny-llama/fast-token-ids", "tiny-llama", [*small, "--gsp-fast-prepare", "--tokenize-prompt"]
    yield "tiny-llama/no-system", "tiny-llama", [*small, "--gsp-system-prompt-len", "0"]
    yield "tiny-llama/turns", "tiny-llama", [*small, "--gsp-num-turns", "3"]
    yield "tiny-llama/turns-ratio", "tiny-llama", [*small, "--gsp-num-turns", "2", "--gsp-range-ratio", "0.2", *zipf, "1.0"]


def prefix_row(row):
    # The key begins with a random number and the time; what lasts is the group.
    return {"group": int(row.routing_key.rpartition("_")[2])} if row.routing_key else {}


def make_prefixes(reference):
    cases = []
    # The tool keeps what it made under the home folder, by a name that does not hold everything.
    os.environ["HOME"] = str(reference.scratch)
    for name, tokenizer, flags in prefix_cases():
        for seed in SEEDS:
            shutil.rmtree(Path(reference.scratch, ".cache"), ignore_errors=True)
            argv = command("generated-shared-prefix", seed, flags)
            got = reference.dataset(argv, tokenizer, prefix_row)
            del got["printed"]
            cases.append({"name": f"{name}/seed-{seed}", "tokenizer": tokenizer, "argv": argv, **got})
    return {"cases": cases}, 4


# ---------------------------------------------------------------- traces.json


def trace_cases():
    """(name, tokenizer, flags)"""
    base = ["--dataset-path", "{FIXTURES}/mooncake_small.jsonl"]
    for tokenizer in ("tiny-llama", "bytes", "bos"):
        yield f"{tokenizer}/plain", tokenizer, base
    yield "tiny-llama/rounds", "tiny-llama", [*base, "--mooncake-num-rounds", "3"]
    yield "bytes/rounds", "bytes", [*base, "--mooncake-num-rounds", "2"]
    yield "tiny-llama/all-rows", "tiny-llama", [*base, "--num-prompts", "1000"]
    yield "tiny-llama/slow", "tiny-llama", [*base, "--mooncake-slowdown-factor", "2.5"]


def make_traces(reference):
    """Whole runs: this data set is made while it is sent, so that only the requests tell what it is."""
    cases = []
    for name, tokenizer, flags in trace_cases():
        run = ["--warmup-requests", "0", "--max-concurrency", "1", "--disable-tqdm", "--output-details", "--output-file", "{DIR}/result.jsonl"]
        argv = command("mooncake", 42, [*run, *flags], count=4)
        reference.server.reset(gap_ms=0)
        line = reference.scratch / "result.jsonl"
        line.unlink(missing_ok=True)
        status, text = reference.run(argv, tokenizer)
        assert status == 0, (status, text, (reference.scratch / "stderr").read_text())
        bodies = [entry["body"] for entry in reference.server.log() if entry["path"] == "/generate"]
        rows = [{"prompt": body["text"], "output_len": body["sampling_params"]["max_new_tokens"]} for body in bodies]
        result = json.loads(line.read_text())
        cases.append({"name": name, "tokenizer": tokenizer, "argv": argv, "rows": rows, "total_input_tokens": result["total_input_tokens"]})
    return {"cases": cases}, 4


# ---------------------------------------------------------------- requests.json


def request_cases():
    """(name, tokenizer, flags)"""
    base = ["--dataset-path", "{FIXTURES}/openai_small.jsonl"]
    yield "plain", "tiny-llama", base
    yield "all-rows", "tiny-llama", [*base, "--num-prompts", "1000"]
    yield "output-len", "tiny-llama", [*base, "--num-prompts", "1000", "--sharegpt-output-len", "7"]


def request_row(row):
    return {"extra_request_body": row.extra_request_body}


def make_requests(reference):
    cases = []
    for name, tokenizer, flags in request_cases():
        argv = command("openai", 42, flags, "sglang-oai-chat")
        cases.append({"name": name, "tokenizer": tokenizer, "argv": argv, **reference.dataset(argv, tokenizer, request_row)})
    return {"cases": cases}, 4


# ---------------------------------------------------------------- conversations.json


def conversation_cases():
    """(name, flags)"""
    base = ["--dataset-path", "{FIXTURES}/agentic_small.json"]
    yield "plain", base
    yield "all-rows", [*base, "--num-prompts", "1000"]
    yield "offset", [*base, "--dataset-offset", "2"]
    yield "offset-wraps", [*base, "--dataset-offset", "-3", "--num-prompts", "1000"]
    yield "turns", [*base, "--agentic-max-turns", "2", "--num-prompts", "1000"]
    yield "output-len", [*base, "--sharegpt-output-len", "17"]


def make_conversations(reference):
    cases = []
    for name, flags in conversation_cases():
        argv = command("agentic-trace", 42, flags, "sglang-oai-chat", count=3)
        cases.append({"name": name, "tokenizer": "tiny-llama", "argv": argv, **reference.dataset(argv, "tiny-llama")})
    return {"cases": cases}, 4


# ---------------------------------------------------------------- turns.json


def turn_cases():
    """(name, backend, data set, flags, server settings)"""
    trace = ["--dataset-path", "{FIXTURES}/agentic_small.json", "--num-prompts", "4"]
    groups = [
        "--gsp-num-groups", "2", "--gsp-prompts-per-group", "2", "--gsp-system-prompt-len", "9", "--gsp-question-len", "5",
        "--gsp-output-len", "4", "--gsp-num-turns", "3",
    ]
    for backend in ("sglang-oai-chat", "vllm-chat", "lmdeploy-chat"):
        yield "trace", backend, "agentic-trace", [*trace, "--sharegpt-output-len", "5"], {}
    yield "trace-counted", "sglang-oai-chat", "agentic-trace", [*trace, "--sharegpt-output-len", "5"], {"usage": True}
    yield "trace-reasoning", "sglang-oai-chat", "agentic-trace", [*trace, "--sharegpt-output-len", "6"], {"reasoning": True}
    yield "trace-no-stream", "sglang-oai-chat", "agentic-trace", [*trace, "--sharegpt-output-len", "5", "--disable-stream"], {}
    yield "trace-failure", "sglang-oai-chat", "agentic-trace", [*trace, "--sharegpt-output-len", "5"], {"fail": [1]}
    yield "trace-extra-body", "sglang-oai-chat", "agentic-trace", [
        *trace, "--sharegpt-output-len", "5", "--extra-request-body", '{"top_p":0.9,"stream_options":{"include_usage":false,"x":1}}',
    ], {}
    yield "groups", "sglang-oai-chat", "generated-shared-prefix", groups, {}


def make_turns(reference):
    """Whole runs: each request holds the server's replies to those before it."""
    cases = []
    os.environ["HOME"] = str(reference.scratch)
    for name, backend, dataset, flags, settings in turn_cases():
        shutil.rmtree(Path(reference.scratch, ".cache"), ignore_errors=True)
        run = ["--warmup-requests", "0", "--max-concurrency", "1", "--disable-tqdm", "--output-details", "--output-file", "{DIR}/result.jsonl"]
        argv = command(dataset, 42, [*run, *flags], backend)
        reference.server.reset(gap_ms=0, replies=True, **settings)
        line = reference.scratch / "result.jsonl"
        line.unlink(missing_ok=True)
        status, text = reference.run(argv)
        assert status == 0, (status, text, (reference.scratch / "stderr").read_text())
        exchanges = [{"body": entry["body"], "reply": entry["reply"]} for entry in reference.server.log() if "reply" in entry]
        result = json.loads(line.read_text())
        kept = {key: result[key] for key in ("completed", "total_input_tokens", "total_output_tokens", "input_lens", "output_lens", "generated_texts")}
        cases.append({"name": f"{backend}/{name}", "tokenizer": "tiny-llama", "argv": argv, "server": settings, "line": kept, "exchanges": exchanges})
    return {"cases": cases}, 4


MAKERS = {"prefixes": make_prefixes, "traces": make_traces, "requests": make_requests, "conversations": make_conversations, "turns": make_turns}
