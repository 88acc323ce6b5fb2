#!/usr/bin/env python3
"""Records what `vllm bench serve` does, as golden files for bench-vllm.

    make_vllm.py --python VENV/bin/python [--out DIR] [--only prompts payloads arrivals results]

VENV must hold vllm (see PROVENANCE_VLLM.md). The command's own parser and `main` are run with real command lines; the
capture server of make_golden.py answers and keeps every request. Nothing is fetched from the network.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import traceback
import types
from importlib import metadata
from pathlib import Path

import make_golden as golden

HERE = Path(__file__).resolve().parent
SEEDS = (0, 1, 42)
VARIABLES = ("OPENAI_API_KEY", "SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "VLLM_USE_RUST_BENCH")


class Reply(golden.Reply):
    """As a vLLM server replies: the counts come in a frame of their own, at the end. A request for no token gets one."""

    def __init__(self, body, settings):
        prompt = body.get("prompt")
        if isinstance(prompt, list):
            body = {**body, "prompt": "".join(map(str, prompt))}
        if body.get("max_tokens") == 0:
            body = {**body, "max_tokens": 1}
        super().__init__(body, settings)

    def frames(self, native):
        counted, self.settings = self.settings["usage"], {**self.settings, "usage": False}
        frames = super().frames(native)
        if counted:
            frames.append({"id": "r0", "model": self.model, "choices": [], "usage": self.usage(self.count)})
        return frames


golden.Reply = Reply


class Reference:
    """Runs the Python client, each time in a fork of this process."""

    def __init__(self, fixtures, server, scratch):
        os.environ.update(
            HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", NO_PROXY="127.0.0.1",
            VLLM_TARGET_DEVICE="cpu", VLLM_LOGGING_LEVEL="ERROR", VLLM_NO_USAGE_STATS="1",
        )
        for name in VARIABLES:
            os.environ.pop(name, None)
        self.fixtures, self.server, self.scratch = fixtures, server, scratch
        from vllm.benchmarks import serve
        from vllm.utils.argparse_utils import FlexibleArgumentParser

        self.serve, self.parser = serve, FlexibleArgumentParser
        self.versions = {"python": platform.python_version()}
        self.versions |= {name: metadata.version(name) for name in ("vllm", "transformers", "tokenizers", "numpy", "aiohttp")}

    def places(self, tokenizer):
        return {
            "{URL}": self.server.url, "{HOST}": self.server.host, "{TOKENIZER}": str(self.fixtures / "tokenizers" / tokenizer),
            "{FIXTURES}": str(self.fixtures), "{DIR}": str(self.scratch),
        }

    def fill(self, argv, tokenizer):
        filled = []
        for word in argv:
            for name, real in self.places(tokenizer).items():
                word = word.replace(name, real)
            filled.append(word)
        return filled

    def clean(self, value, tokenizer):
        if isinstance(value, dict):
            return {k: self.clean(v, tokenizer) for k, v in value.items()}
        if isinstance(value, list):
            return [self.clean(v, tokenizer) for v in value]
        if isinstance(value, str):
            for name, real in self.places(tokenizer).items():
                value = value.replace(real, name)
        return value

    def fork(self, work):
        """`work` in a fork; gives (exit status, standard output)."""
        sys.stdout.flush()
        out, err = self.scratch / "stdout", self.scratch / "stderr"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.chdir(self.scratch)
                for number, path in ((1, out), (2, err)):
                    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
                work()
                status = 0
            except SystemExit as stop:
                status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        _, wait = os.waitpid(pid, 0)
        status = os.waitstatus_to_exitcode(wait)
        if status != 0:
            print(err.read_text()[-1500:], file=sys.stderr)
        return status, out.read_text()

    def run(self, argv, tokenizer="tiny-llama", environ=()):
        """A whole run; gives (exit status, standard output, result)."""
        result = self.scratch / "result.json"
        result.unlink(missing_ok=True)

        def work():
            os.environ.update(environ)
            parser = self.parser()
            self.serve.add_cli_args(parser)
            self.serve.main(parser.parse_args(self.fill(argv, tokenizer)))

        status, printed = self.fork(work)
        text = result.read_text() if result.exists() else ""
        return status, printed, json.loads(text.splitlines()[-1]) if text else None

    def offsets(self, schedule, count, seed):
        """When the client would send each of `count` requests, in seconds after the start."""
        path = self.scratch / "offsets.json"

        def work():
            import numpy

            class Clock(types.SimpleNamespace):
                """Stands still, so that each pause is an offset from the start."""

            waits = []

            async def sleep(seconds):
                waits.append(float(seconds))

            serve = self.serve
            real_time, real_asyncio = serve.time, serve.asyncio
            serve.time = Clock(time=lambda: 0.0, perf_counter=real_time.perf_counter)
            serve.asyncio = Clock(sleep=sleep)
            rates = []

            async def all_of_them():
                async for _, rate in serve.get_request(list(range(count)), **schedule):
                    rates.append(float(rate))

            numpy.random.seed(seed)
            asyncio.run(all_of_them())
            serve.time, serve.asyncio = real_time, real_asyncio
            path.write_text(json.dumps({"offsets": waits, "rates": rates}))

        status, _ = self.fork(work)
        assert status == 0, (schedule, status)
        return json.loads(path.read_text())


COMMON = ["--base-url", "{URL}", "--model", "tiny", "--tokenizer", "{TOKENIZER}", "--max-concurrency", "1", "--disable-tqdm"]
SAVED = ["--save-result", "--save-detailed", "--result-dir", "{DIR}", "--result-filename", "result.json"]


def generations(log):
    return [entry for entry in log if entry["path"].endswith("completions")]


# ---------------------------------------------------------------- prompts


def prompt_cases():
    """(name, tokenizer, flags) without the seed."""
    small = ["--dataset-name", "random", "--random-input-len", "24", "--random-output-len", "6"]
    for tokenizer in ("bytes", "bos", "drift", "tiny-llama"):
        yield f"random/{tokenizer}/fixed", tokenizer, small
        yield f"random/{tokenizer}/range", tokenizer, [*small, "--random-range-ratio", "0.4"]
        yield f"random/{tokenizer}/prefix", tokenizer, [*small, "--random-prefix-len", "9"]
    two = '{"input": 0.3, "output": 0.5}'
    yield "random/tiny-llama/two-ranges", "tiny-llama", [*small, "--random-range-ratio", two]
    yield "random/drift/everything", "drift", [*small, "--random-range-ratio", two, "--random-prefix-len", "5"]
    yield "random/tiny-llama/batches", "tiny-llama", [*small, "--random-batch-size", "3"]
    yield "random/tiny-llama/shortcuts", "tiny-llama", ["--input-len", "10", "--output-len", "3"]
    yield "random/bos/one-token", "bos", ["--random-input-len", "2", "--random-output-len", "1"]
    sharegpt = ["--dataset-name", "sharegpt", "--dataset-path", "{FIXTURES}/sharegpt_small.json"]
    for tokenizer in ("bytes", "bos", "tiny-llama"):
        yield f"sharegpt/{tokenizer}/plain", tokenizer, sharegpt
    yield "sharegpt/tiny-llama/output-len", "tiny-llama", [*sharegpt, "--sharegpt-output-len", "5"]
    yield "sharegpt/tiny-llama/in-order", "tiny-llama", [*sharegpt, "--disable-shuffle"]
    yield "sharegpt/tiny-llama/more-than-there-are", "tiny-llama", [*sharegpt, "--output-len", "2", "--num-prompts", "70"]
    yield "sharegpt/tiny-llama/no-more", "tiny-llama", [*sharegpt, "--output-len", "2", "--num-prompts", "70", "--no-oversample"]
    custom = ["--dataset-name", "custom", "--dataset-path", "{FIXTURES}/vllm_custom.jsonl"]
    yield "custom/tiny-llama/template", "tiny-llama", [*custom, "--num-prompts", "5"]
    yield "custom/tiny-llama/plain", "tiny-llama", [*custom, "--skip-chat-template", "--num-prompts", "7"]
    yield "custom/bytes/own-lengths", "bytes", [*custom, "--skip-chat-template", "--custom-output-len", "-1"]
    yield "custom/tiny-llama/all-rows", "tiny-llama", [*custom, "--num-prompts", "-1", "--custom-output-len", "-1"]
    yield "custom/tiny-llama/in-order", "tiny-llama", [*custom, "--disable-shuffle", "--num-prompts", "4", "--output-len", "2"]


def make_prompts(reference):
    cases = []
    for name, tokenizer, flags in prompt_cases():
        for seed in SEEDS:
            reference.server.reset()
            argv = [*COMMON, *SAVED, "--seed", str(seed), "--request-id-prefix", "r-", "--num-prompts", "8", *flags]
            status, _, result = reference.run(argv, tokenizer)
            assert status == 0, (name, status)
            rows = [
                {"prompt": entry["body"]["prompt"], "output_len": entry["body"]["max_tokens"], "id": entry["headers"].get("x-request-id")}
                for entry in generations(reference.server.log())
            ]
            for row, length in zip(rows, result["input_lens"], strict=True):
                row["prompt_len"] = length
            cases.append({"name": f"{name}/seed-{seed}", "tokenizer": tokenizer, "argv": argv, "rows": rows})
    return cases


# ---------------------------------------------------------------- payloads


def payload_cases():
    """(name, flags, environment)."""
    yield "default", [], {}
    yield "sampling", [
        "--top-p", "0.9", "--top-k", "5", "--min-p", "0.1", "--temperature", "0", "--frequency-penalty", "0.5",
        "--presence-penalty", "0.25", "--repetition-penalty", "1.1",
    ], {}
    yield "extra-body", ["--extra-body", '{"temperature": 0.5, "stop": ["x"], "model": "other"}', "--temperature", "0.1"], {}
    yield "dotted", ["--extra-body.guided.choice+", "a,b", "--extra-body.n_best", "2k"], {}
    yield "underscores", ["--num_prompts", "2", "--extra_body.top_k=7"], {}
    yield "abbreviated", ["--num-prom", "2", "--served", "alias"], {}
    yield "last-wins", ["--num-prompts", "9", "--header", "A=1", "--header", "B=2", "--num-prompts", "2"], {}
    yield "headers", ["--header", "X-One=1", "X-Two= two=2 "], {"OPENAI_API_KEY": "secret"}
    yield "header-over-key", ["--header", "Authorization=Mine"], {"OPENAI_API_KEY": "secret"}
    yield "logprobs", ["--logprobs", "3"], {}
    yield "lora-round-robin", ["--lora-modules", "one", "two", "--lora-assignment", "round-robin", "--num-prompts", "5"], {}
    yield "lora-random", ["--lora-modules", "one", "two", "three", "--num-prompts", "12"], {}
    yield "config", ["--config", "{FIXTURES}/vllm_config.yaml"], {}
    yield "ids", ["--request-id-prefix", "mine-"], {}


def make_payloads(reference):
    cases = []
    for backend in ("vllm", "openai", "openai-chat"):
        endpoint = ["--endpoint", "/v1/chat/completions"] if backend == "openai-chat" else []
        for name, flags, environ in payload_cases():
            reference.server.reset()
            ids = [] if name == "ids" else ["--request-id-prefix", "r-"]
            argv = [
                *COMMON, "--backend", backend, *endpoint, *ids, "--random-input-len", "8", "--random-output-len", "4", "--seed", "42",
                "--num-prompts", "3", *flags,
            ]
            status, _, _ = reference.run(argv, environ=environ)
            assert status == 0, (name, status)
            requests = reference.clean(generations(reference.server.log()), "tiny-llama")
            cases.append({"name": f"{backend}/{name}", "argv": argv, "environ": environ, "requests": requests})
    return cases


# ---------------------------------------------------------------- arrivals


def make_arrivals(reference):
    cases = []
    plain = {"request_rate": 10.0}
    for burstiness in (0.3, 1.0, 2.5, float("inf")):
        for seed in (0, 1, 2, 3):
            got = reference.offsets({**plain, "burstiness": burstiness}, 20, seed)
            shown = "inf" if burstiness == float("inf") else burstiness
            cases.append({"name": f"rate-10/burstiness-{shown}/seed-{seed}", "seed": seed, "rate": 10.0, "burstiness": shown, **got})
    for strategy, start, end in (("linear", 2, 20), ("exponential", 2, 20), ("linear", 5, 5)):
        for burstiness in (1.0, 2.5):
            schedule = {
                "request_rate": float("inf"), "burstiness": burstiness, "ramp_up_strategy": strategy, "ramp_up_start_rps": start,
                "ramp_up_end_rps": end,
            }
            got = reference.offsets(schedule, 20, 42)
            cases.append({
                "name": f"{strategy}-{start}-{end}/burstiness-{burstiness}", "seed": 42, "burstiness": burstiness, "strategy": strategy,
                "start": start, "end": end, **got,
            })
    return cases


# ---------------------------------------------------------------- results


def result_cases():
    """(name, flags, settings of the capture server)."""
    everything = ["--percentile-metrics", "ttft,tpot,itl,e2el,client_queue_time,e2el_including_client_queue"]
    yield "default", [], {}
    yield "counted", [], {"usage": True}
    yield "short", [], {"usage": True, "short": True}
    yield "frames-of-two", [], {"sizes": [1, 2]}
    yield "everything", [*everything, "--metric-percentiles", "50,99,99.9", "--request-rate", "50", "--goodput", "ttft:5000", "e2el:9000"], {"usage": True}
    yield "everything-at-once", [*everything], {}
    yield "goodput-missed", ["--goodput", "ttft:0"], {}
    yield "ramp", ["--ramp-up-strategy", "linear", "--ramp-up-start-rps", "20", "--ramp-up-end-rps", "40"], {}
    yield "metadata", ["--metadata", "a=1", "label = x=y", "--label", "mine"], {}
    yield "no-tokenizer", ["--skip-tokenizer-init", "--dataset-name", "custom", "--dataset-path", "{FIXTURES}/vllm_custom.jsonl"], {"usage": True}
    yield "one-failure", [], {"usage": True, "fail": [2]}
    yield "not-detailed", ["--not-detailed"], {}


def make_results(reference):
    cases = []
    for backend in ("openai", "openai-chat"):
        endpoint = ["--endpoint", "/v1/chat/completions"] if backend == "openai-chat" else []
        for name, flags, settings in result_cases():
            reference.server.reset(**settings, replies=True)
            saved = [word for word in SAVED if word != "--save-detailed" or name != "not-detailed"]
            flags = [word for word in flags if word != "--not-detailed"]
            argv = [
                *COMMON, *saved, "--backend", backend, *endpoint, "--request-id-prefix", "r-", "--random-input-len", "8",
                "--random-output-len", "5", "--seed", "7", "--num-prompts", "5", *flags,
            ]
            status, printed, result = reference.run(argv)
            assert status == 0 and result, (name, status)
            lines = printed.splitlines()
            first = next(at for at, line in enumerate(lines) if "Serving Benchmark Result" in line)
            last = next(at for at, line in enumerate(lines) if line == "=" * 50)
            replies = [
                {"body": entry["body"], "reply": entry["reply"]} for entry in generations(reference.server.log())
            ]
            cases.append({
                "name": f"{backend}/{name}", "argv": argv, "table": lines[first : last + 1], "keys": list(result),
                "result": reference.clean(result, "tiny-llama"), "exchanges": reference.clean(replies, "tiny-llama"),
            })
    return cases


MAKERS = {"prompts": make_prompts, "payloads": make_payloads, "arrivals": make_arrivals, "results": make_results}


def finite(value):
    """Infinities as text, which JSON has no number for."""
    if isinstance(value, dict):
        return {k: finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return "inf" if value == float("inf") else value


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the interpreter that has vllm; this script starts itself with it")
    parser.add_argument("--fixtures", type=Path, default=HERE.parent / "fixtures")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--only", nargs="*", choices=MAKERS, default=list(MAKERS))
    arguments = parser.parse_args()
    if arguments.python:
        words = [word for word in sys.argv[1:] if word not in ("--python", arguments.python)]
        os.execv(arguments.python, [arguments.python, __file__, *words])
    # The server's process is made before anything starts threads.
    server = golden.CaptureServer()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            reference = Reference(arguments.fixtures.resolve(), server, Path(scratch))
            for name in arguments.only:
                cases = MAKERS[name](reference)
                path = arguments.out / f"vllm_{name}.json"
                body = ",\n".join(json.dumps(finite(case), ensure_ascii=False) for case in cases)
                made_with = json.dumps(reference.versions)
                path.write_text(f'{{"made_with": {made_with}, "cases": [\n{body}\n]}}\n')
                print(f"{path}: {len(cases)} cases")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
