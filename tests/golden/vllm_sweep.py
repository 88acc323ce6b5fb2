#!/usr/bin/env python3
"""Records what `vllm bench sweep serve` and `serve_workload` do, as a golden file for bench-vllm sweep.

    vllm_sweep.py --python VENV/bin/python --stand-in target/debug/sweep-stand-in [--out DIR]

VENV must hold vllm and pandas (see PROVENANCE_VLLM.md). Each case runs the tool's own parser and `main` in a fork, in an
empty folder in which `vllm` is the stand-in (tests/stand_ins/sweep.rs): server and client of all commands. Recorded are what
the tool printed, the calls that the stand-in got, and every file that is left.
"""

import argparse
import contextlib
import io
import json
import os
import platform
import re
import socket
import sys
import tempfile
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMANDS = ["--serve-cmd", "./vllm serve m --port {PORT} --max-model-len=1", "--bench-cmd", "./vllm bench serve --num-prompts 9"]
TO = ["-o", "results", "-e", "x"]

NAMED = {"short": {"max_concurrency": 1, "num_prompts": 3}, "long run": {"max_concurrency": 4, "num_prompts": 5}}
LISTED = [{"max_num_seqs": 8}, {"max_num_seqs": 16, "enable_chunked_prefill": False}]
KINDS = [
    {
        "num-prompts": 11, "request_rate": 2.5, "ignore_eos": True, "disable_tqdm": False, "extra_body.top_k": 1,
        "nested.flag": True, "metadata": ["a=1", "b=2"], "extra-body": {"é": 1e-7, "b": [None, True]}, "label": None,
    },
    {"_benchmark_name": "a/../b", "seed": 1e16, "goodput": "ttft:1 'x'"},
]

CASES = [
    {
        "name": "a product of both kinds of file",
        "command": "serve",
        "files": {"serve.json": LISTED, "bench.json": NAMED},
        "runs": [{"arguments": [*COMMANDS, "--serve-params", "serve.json", "--bench-params", "bench.json", "--num-runs", "2", *TO]}],
    },
    {
        "name": "nothing is varied",
        "command": "serve",
        "runs": [{"arguments": [*COMMANDS, *TO]}],
    },
    {
        "name": "kinds of values, a command between, a warm-up",
        "command": "serve",
        "files": {"bench.json": KINDS},
        "runs": [
            {
                "arguments": [
                    *COMMANDS, "--bench-params", "bench.json", "--num-runs", "1", "--warmup-num-prompts", "2",
                    "--after-bench-cmd", "./vllm after 'a b' \"c\\\"d\"", *TO,
                ]
            }
        ],
    },
    {
        "name": "linked variables",
        "command": "serve",
        "files": {
            "serve.json": [{"max_num_seqs": 1}, {"max_num_seqs": 2}, {"other": 1}],
            "bench.json": [{"max_concurrency": 2}, {"max_concurrency": 1}, {"max_concurrency": 3}],
        },
        "runs": [
            {
                "arguments": [
                    *COMMANDS, "--serve-params", "serve.json", "--bench-params", "bench.json", "--num-runs", "1",
                    "--link-vars", "max_num_seqs=max_concurrency", *TO,
                ]
            }
        ],
        # The tool starts servers that no combination uses.
        "servers": False,
    },
    {
        "name": "resumed",
        "command": "serve",
        "files": {"serve.json": LISTED, "bench.json": [{"max_concurrency": 1}, {"max_concurrency": 2}]},
        "runs": [
            {
                "arguments": [
                    *COMMANDS, "--serve-params", "serve.json", "--bench-params", "bench.json", "--num-runs", "2", *more, *TO,
                ],
                "delete": delete,
            }
            for more, delete in (
                ([], []),
                (["--resume"], [f"results/x/SERVE--max_num_seqs=8-BENCH--max_concurrency=2/{n}.json" for n in ("summary", "run=1")]),
            )
        ],
    },
    {
        "name": "failures",
        "command": "serve",
        "files": {
            "serve.json": [{"_benchmark_name": "bad", "fail": True}, {"max_num_seqs": 1}],
            "bench.json": [{"fail": True}, {"max_concurrency": 2}],
        },
        "runs": [
            {
                "arguments": [
                    *COMMANDS, "--serve-params", "serve.json", "--bench-params", "bench.json", "--num-runs", "1",
                    "--continue-on-error", *TO,
                ]
            }
        ],
    },
    {
        "name": "a dry run",
        "command": "serve",
        "files": {"serve.json": LISTED, "bench.json": NAMED},
        "runs": [{"arguments": [*COMMANDS, "--serve-params", "serve.json", "--bench-params", "bench.json", "--dry-run", *TO]}],
    },
    {
        "name": "rates between the ends",
        "command": "serve_workload",
        "files": {"bench.json": [{"num_prompts": 9}, {"num_prompts": 9, "seed": 3}]},
        "runs": [{"arguments": [*COMMANDS, "--bench-params", "bench.json", "--workload-iters", "5", "--num-runs", "2", *TO]}],
    },
    {
        "name": "concurrencies between the ends",
        "command": "serve_workload",
        "runs": [{"arguments": [*COMMANDS, "--workload-var", "max_concurrency", "--num-runs", "1", *TO]}],
    },
    {
        "name": "a dry run of a workload",
        "command": "serve_workload",
        "files": {"serve.json": LISTED},
        "runs": [{"arguments": [*COMMANDS, "--serve-params", "serve.json", "--dry-run", *TO]}],
    },
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def inside(run):
    """What `run` returns in a fork of this process, as JSON."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(run(), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        answer = json.load(pipe)
    os.waitpid(child, 0)
    return answer


def sweep(command, arguments):
    """Runs the tool; what it printed, and the error that ended it."""
    from vllm.benchmarks.sweep import serve, serve_workload
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    module = {"serve": serve, "serve_workload": serve_workload}[command]
    kind = {"serve": "SweepServeArgs", "serve_workload": "SweepServeWorkloadArgs"}[command]
    parser = FlexibleArgumentParser()
    getattr(module, kind).add_cli_args(parser)
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            module.main(parser.parse_args(arguments))
        except Exception as raised:
            error = f"{type(raised).__name__}: {raised}"
    return printed.getvalue(), error


def record(case, stand_in):
    port = str(free_port())

    def run():
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            os.symlink(stand_in, "vllm")
            for name, value in case.get("files", {}).items():
                Path(name).write_text(json.dumps(value), encoding="utf-8")
            runs = []
            for one in case["runs"]:
                for name in one.get("delete", []):
                    os.remove(name)
                arguments = [word.replace("{PORT}", port) for word in one["arguments"]]
                printed, error = sweep(case["command"], arguments)
                runs.append({**one, "stdout": printed, "error": error})
            calls = [json.loads(line) for line in Path("calls.jsonl").read_text("utf-8").splitlines()] if Path("calls.jsonl").exists() else []
            results = Path("results")
            files = {str(path): path.read_text("utf-8") for path in sorted(results.rglob("*")) if path.is_file()}
            os.chdir("/")
            return {**case, "runs": runs, "calls": calls, "results": files}

    recorded = json.dumps(inside(run), ensure_ascii=False)
    return json.loads(re.sub(rf"\b{port}\b", "{PORT}", recorded))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True)
    parser.add_argument("--stand-in", required=True)
    parser.add_argument("--out", default=str(HERE))
    arguments = parser.parse_args()
    if not os.environ.get("SWEEP_INSIDE"):
        environment = {**os.environ, "SWEEP_INSIDE": "1", "VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1"}
        os.execve(arguments.python, [arguments.python, *sys.argv], environment)
    import vllm.benchmarks.sweep.serve  # noqa: F401, so that the forks have it

    stand_in = str(Path(arguments.stand_in).resolve())
    cases = [record(case, stand_in) for case in CASES]
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in ("vllm", "numpy", "pandas")}
    text = json.dumps({"made_with": versions, "cases": cases}, indent=1, ensure_ascii=False)
    (Path(arguments.out) / "vllm_sweep.json").write_text(text + "\n", encoding="utf-8")


main()
