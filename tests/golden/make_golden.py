#!/usr/bin/env python3
"""Records what the Python benchmark client does, as golden files for servebench.

    make_golden.py --python VENV/bin/python [--fixtures DIR] [--out DIR] [--only datasets payloads ...]

VENV must hold sglang (see PROVENANCE.md). The client's own `cli_main` is run with a real command line; a loopback
server, the *capture server* below, answers it and keeps every request. Nothing is fetched from the network.

Importing sglang takes tens of seconds, so it is imported once and each run is a fork of this process.
"""

import argparse
import asyncio
import contextlib
import io
import json
import math
import multiprocessing
import os
import platform
import random
import re
import shutil
import socket
import sys
import tempfile
import time
import traceback
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path

import matrix
import pictures
import steady
import structured
import tables

HERE = Path(__file__).resolve().parent
SEEDS = (1, 42, 2026)
BACKENDS = ("sglang", "sglang-native", "sglang-oai", "sglang-oai-chat", "vllm", "vllm-chat", "lmdeploy", "lmdeploy-chat")
NATIVE = ("sglang", "sglang-native")
OTHERS = ("sglang-embedding", "vllm-embedding", "trt", "truss")
# Variables that would change what the client sends; every run starts without them.
CLIENT_VARIABLES = ("OPENAI_API_KEY", "API_KEY", "SGLANG_IS_IN_CI", "SGLANG_TORCH_PROFILER_DIR", "SGLANG_USE_MODELSCOPE")


# ---------------------------------------------------------------- capture server

# The replies are made of these, one per token. Some take more than one byte or more than one model token.
WORDS = (" ash", " né", " birch", " 木", ",", " cedar", " ☂", " elm", "\n", " fir", " größer", " hazel", ".")

# What a reply looks like; a run may override any of these.
SERVER_DEFAULTS = {
    "tokenizer": None,  # what /model_info names
    "sizes": [1],       # tokens per streamed frame, repeated
    "short": False,     # stop a quarter before the requested length
    "usage": False,     # OpenAI routes: report token counts
    "reasoning": False, # chat: the first half of the tokens is reasoning
    "cached": False,    # report cached prompt tokens
    "accept": None,     # avg_spec_accept_length in /server_info
    "fail": [],         # numbers of the generation requests (warm-up is 0) that get status 500
    "gap_ms": 1,        # pause before each frame
    "replies": False,   # keep the replies in the log, too
    "raw": False,       # keep the bytes of the request bodies, too
}


class Captured:
    """What the capture server holds between runs."""

    def __init__(self):
        self.reset({})

    def reset(self, settings):
        self.settings = {**SERVER_DEFAULTS, **settings}
        self.log, self.generations = [], 0


def said(content):
    """The text of a message: itself, or its parts that are text."""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


class Reply:
    """One deterministic answer: it depends on the request body and the settings only."""

    def __init__(self, body, settings):
        self.settings, self.chat = settings, "messages" in body
        limit = body.get("max_tokens") or body.get("max_completion_tokens") or body["sampling_params"]["max_new_tokens"]
        self.count = limit - limit // 4 if settings["short"] else limit
        self.finish = "length" if self.count == limit else "stop"
        prompt = body.get("text") or body.get("input_ids") or body.get("prompt") or "".join(said(m["content"]) for m in body["messages"])
        units = prompt if isinstance(prompt, list) else prompt.encode()
        self.prompt_tokens = len(units)
        self.words = [WORDS[(sum(units) + k) % len(WORDS)] for k in range(self.count)]
        self.model = body.get("model")

    def cached(self):
        """Cached prompt tokens and where they were, by prompt length: none, on two tiers, or on three."""
        whole, kind = self.prompt_tokens // 4, self.prompt_tokens % 3
        if not self.settings["cached"] or kind == 0 or whole == 0:
            return 0, None
        details = {"device": whole - whole // 2, "host": whole // 2}
        if kind == 2:
            details |= {"storage": 2, "storage_backend": "file"}
        return whole + (2 if kind == 2 else 0), details

    def cuts(self):
        """(first, end) token numbers of each frame."""
        sizes, first, k = self.settings["sizes"], 0, 0
        while first < self.count:
            end = min(first + sizes[k % len(sizes)], self.count)
            yield first, end
            first, k = end, k + 1

    def usage(self, completion):
        return {"prompt_tokens": self.prompt_tokens, "completion_tokens": completion, "total_tokens": self.prompt_tokens + completion}

    def native(self, end):
        cached, details = self.cached()
        finish = {"type": self.finish} if end == self.count else None
        meta = {"id": "r0", "finish_reason": finish, "prompt_tokens": self.prompt_tokens, "completion_tokens": end, "cached_tokens": cached}
        if details:
            meta["cached_tokens_details"] = details
        return {"text": "".join(self.words[:end]), "output_ids": list(range(end)), "meta_info": meta}

    def message(self, first, end):
        if not self.settings["reasoning"]:
            return {"content": "".join(self.words[first:end])}
        half = self.count // 2
        thought, said = "".join(self.words[first:min(end, half)]), "".join(self.words[max(first, half):end])
        return {"reasoning_content": thought or None, "content": said or None}

    def openai(self, first, end, stream):
        choice = {"index": 0}
        if self.chat:
            choice["delta" if stream else "message"] = self.message(first, end)
        else:
            choice["text"] = "".join(self.words[first:end])
        choice["finish_reason"] = self.finish if end == self.count else None
        kind = "chat.completion" if self.chat else "text_completion"
        frame = {"id": "r0", "object": kind + (".chunk" if stream and self.chat else ""), "created": 0, "model": self.model, "choices": [choice]}
        counts = self.settings["usage"] and not (stream and self.chat)
        frame["usage"] = self.usage(end) if counts else None
        if not stream and not counts:
            del frame["usage"]
        return frame

    def frames(self, native):
        """The objects of a streamed reply, in order."""
        if native:
            return [self.native(end) for _, end in self.cuts()]
        head = {"id": "r0", "object": "chat.completion.chunk", "created": 0, "model": self.model}
        frames = []
        if self.chat:
            role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
            frames.append({**head, "choices": [role], "usage": None})
        frames += [self.openai(first, end, True) for first, end in self.cuts()]
        if self.chat and self.cached()[1]:
            frames.append({**head, "choices": [], "sglext": {"cached_tokens_details": self.cached()[1]}})
        if self.chat and self.settings["usage"]:
            frames.append({**head, "choices": [], "usage": self.usage(self.count)})
        return frames

    def whole(self, native):
        """The one object of an unstreamed reply."""
        if native:
            return self.native(self.count)
        reply = self.openai(0, self.count, False)
        if self.cached()[1]:
            reply["sglext"] = {"cached_tokens_details": self.cached()[1]}
        return reply


class CaptureHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    state = Captured()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/capture/reset":
            self.state.reset(json.loads(raw))
            return self.send_json({})
        if self.path == "/capture/log":
            return self.send_json(self.state.log)
        entry = {"method": self.command, "path": self.path, "headers": {k.lower(): v for k, v in self.headers.items()}}
        if raw:
            entry["body"] = json.loads(raw)
            if self.state.settings["raw"]:
                entry["raw_body"] = raw.decode()
        self.state.log.append(entry)
        settings = self.state.settings
        if self.path.endswith(("/generate", "completions")):
            self.generate(entry, settings)
        elif self.path.endswith(("/generate_stream", ":predict")):
            self.send_text("".join(others(self.path, entry["body"])), 200, "text/event-stream")
        elif self.path == "/v1/embeddings":
            self.send_json({"object": "list", "data": [{"index": 0, "embedding": [0.5, -0.5]}], "usage": {"prompt_tokens": 7}})
        elif self.path == "/v1/models":
            self.send_json({"object": "list", "data": [{"id": "served-tiny", "object": "model"}]})
        elif self.path == "/model_info":
            self.send_json({"model_path": settings["tokenizer"], "tokenizer_path": settings["tokenizer"]})
        elif self.path == "/server_info":
            inner = {"effective_max_running_requests_per_dp": 64, "memory_usage": {"token_capacity": 20000}}
            if settings["accept"] is not None:
                inner["avg_spec_accept_length"] = settings["accept"]
            self.send_json({"internal_states": [inner], "version": "capture"})
        elif self.path.split("?")[0] in ("/flush_cache", "/reset_prefix_cache", "/start_profile", "/stop_profile"):
            self.send_text("done\n")
        else:
            self.send_text("no such route\n", 404)

    def generate(self, entry, settings):
        body, native = entry["body"], self.path.endswith("/generate")
        number, self.state.generations = self.state.generations, self.state.generations + 1
        if number in settings["fail"]:
            kept = {"status": 500, "type": "text/plain", "writes": ["engine on strike\n"]}
            self.send_text(kept["writes"][0], 500)
        elif body["stream"]:
            objects = Reply(body, settings).frames(native)
            writes = ["data: " + json.dumps(o, separators=(",", ":")) + "\n\n" for o in objects] + ["data: [DONE]\n\n"]
            kept = {"status": 200, "type": "text/event-stream", "writes": writes}
            self.send_response(200)
            self.send_header("Content-Type", kept["type"])
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for text in writes:
                time.sleep(settings["gap_ms"] / 1000)
                data = text.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        else:
            text = json.dumps(Reply(body, settings).whole(native), separators=(",", ":"))
            kept = {"status": 200, "type": "application/json", "writes": [text]}
            self.send_text(text, 200, kept["type"])
        if settings["replies"]:
            entry["reply"] = kept

    def send_json(self, value):
        self.send_text(json.dumps(value), 200, "application/json")

    def send_text(self, text, status=200, kind="text/plain"):
        data = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def others(path, body):
    """The frames of the routes that only one kind of server has."""
    words = WORDS[: body["max_tokens"]]
    if path.endswith(":predict"):
        return ["data: " + json.dumps({"choices": [{"index": 0, "text": word}]}) + "\n\n" for word in words] + ["data: [DONE]\n\n"]
    return ["data: " + json.dumps({"model_name": "ensemble", "text_output": "".join(words[: k + 1])}) + "\n\n" for k in range(len(words))]


class QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_):
        """A client that hangs up is no news; anything else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            traceback.print_exc()


class CaptureServer:
    """The capture server in a process of its own, and the way to talk to it."""

    def __init__(self):
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.host = "127.0.0.1:%d" % listener.getsockname()[1]
        self.url = "http://" + self.host
        self.process = multiprocessing.get_context("fork").Process(target=self._serve, args=(listener,), daemon=True)
        self.process.start()
        listener.close()

    @staticmethod
    def _serve(listener):
        server = QuietServer(listener.getsockname(), CaptureHandler, bind_and_activate=False)
        server.socket.close()
        server.socket, server.server_address, server.server_name = listener, listener.getsockname(), "capture"
        server.serve_forever()

    def _ask(self, path, value=None):
        data = None if value is None else json.dumps(value).encode()
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(self.url + path, data, timeout=10) as reply:
            return json.load(reply)

    def reset(self, **settings):
        self._ask("/capture/reset", settings)

    def log(self):
        return self._ask("/capture/log")

    def stop(self):
        self.process.terminate()
        self.process.join()


# ---------------------------------------------------------------- the Python client


class Reference:
    """Runs the Python client: whole (a fork that calls `cli_main`) or only up to the point where it would send."""

    def __init__(self, fixtures, server, scratch):
        os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false", NO_PROXY="127.0.0.1")
        for name in CLIENT_VARIABLES:
            os.environ.pop(name, None)
        self.fixtures, self.server, self.scratch = fixtures, server, scratch
        import numpy
        from sglang.benchmark import serving

        self.numpy, self.serving = numpy, serving
        self.versions = {"python": platform.python_version()}
        self.versions |= {name: metadata.version(name) for name in ("sglang", "transformers", "tokenizers", "numpy", "aiohttp", "requests")}

    def fill(self, argv, tokenizer):
        """Command line with real paths in place of the placeholders."""
        known = {
            "{URL}": self.server.url, "{TOKENIZER}": str(self.fixtures / "tokenizers" / tokenizer),
            "{FIXTURES}": str(self.fixtures), "{DIR}": str(self.scratch),
        }
        return [re.sub(r"\{[A-Z]+\}", lambda m: known[m[0]], word) for word in argv]

    def clean(self, value, tokenizer):
        """The inverse of `fill`, applied to anything that came out of a run."""
        if isinstance(value, dict):
            return {k: self.clean(v, tokenizer) for k, v in value.items()}
        if isinstance(value, list):
            return [self.clean(v, tokenizer) for v in value]
        if not isinstance(value, str):
            return value
        for real, placeholder in (
            (self.server.url, "{URL}"), (self.server.host, "{HOST}"), (str(self.fixtures / "tokenizers" / tokenizer), "{TOKENIZER}"),
            (str(self.fixtures), "{FIXTURES}"), (str(self.scratch), "{DIR}"),
        ):
            value = value.replace(real, placeholder)
        return re.sub(r"^(/tmp|\{DIR\}/\w+)/\d{10}\.\d+$", r"\1/{TIME}", value)

    def run(self, argv, tokenizer="tiny-llama", environ=(), before=None):
        """One whole run in a fork; gives (exit status, standard output)."""
        sys.stdout.flush()
        out = self.scratch / "stdout"
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.environ.update(environ)
                os.chdir(self.scratch)
                for number, path in ((1, out), (2, self.scratch / "stderr")):
                    os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
                sys.argv = ["bench_serving", *self.fill(argv, tokenizer)]
                if before:
                    before()
                self.serving.cli_main()
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
        return os.waitstatus_to_exitcode(wait), out.read_text()

    def dataset(self, argv, tokenizer, more=lambda row: {}):
        """The rows the client would send, what it printed about them, and the next draws of its two generators. `more`
        gives what else a row has."""
        got = {}

        def kept(row):
            return {"prompt": row.prompt, "prompt_len": int(row.prompt_len), "output_len": int(row.output_len), **more(row)}

        async def instead_of_sending(**given):
            got["rows"] = [kept(row) for row in given["input_requests"]]
            got["probe"] = {
                "exponential": [float(self.numpy.random.exponential(1 / 10.0)) for _ in range(3)],
                "random": [random.random() for _ in range(3)],
            }

        real, printed = self.serving.benchmark, io.StringIO()
        self.serving.benchmark, sys.argv = instead_of_sending, ["bench_serving", *self.fill(argv, tokenizer)]
        try:
            with contextlib.redirect_stdout(printed):
                self.serving.cli_main()
        finally:
            self.serving.benchmark = real
        got["printed"] = [line for line in printed.getvalue().splitlines() if line.startswith("#")]
        return got


# Lines that tell about the machine or the libraries: dumps of the parsed arguments, the file limit, and two lines about
# the model name, which is no folder here.
MACHINE_LINES = ("benchmark_args=", "Namespace(", "Fail to set RLIMIT_NOFILE", "Fail to load tokenizer config", "Check your internet connection")


def console(text):
    """Standard output by lines, less those that depend on the machine."""
    return [re.sub(r"^(Server ready in )[\d.]+", r"\1{NUMBER}", line) for line in text.splitlines() if not line.startswith(MACHINE_LINES)]


# ---------------------------------------------------------------- datasets.json


def dataset_cases():
    """(name, tokenizer, flags) without the seed."""
    small = ["--random-input-len", "24", "--random-output-len", "16"]
    sharegpt = ["--dataset-path", "{FIXTURES}/sharegpt_small.json"]
    custom = ["--dataset-path", "{FIXTURES}/custom_small.jsonl"]
    for name, source in (("random", sharegpt), ("random-ids", [])):
        for tokenizer in ("tiny-llama", "bytes"):
            for ratio in ("0.0", "0.5", "1.0"):
                yield f"{name}/{tokenizer}/ratio-{ratio}", tokenizer, ["--dataset-name", name, *source, *small, "--random-range-ratio", ratio]
            yield f"{name}/{tokenizer}/token-ids", tokenizer, ["--dataset-name", name, *source, *small, "--tokenize-prompt"]
        for tokenizer in ("bos", "drift"):
            yield f"{name}/{tokenizer}/ratio-0.0", tokenizer, ["--dataset-name", name, *source, *small]
        yield f"{name}/bos/token-ids", "bos", ["--dataset-name", name, *source, *small, "--tokenize-prompt"]
        yield f"{name}/bos/one-token", "bos", ["--dataset-name", name, *source, "--random-input-len", "1", "--random-output-len", "1"]
        yield f"{name}/tiny-llama/no-output", "tiny-llama", ["--dataset-name", name, *source, "--random-input-len", "12", "--random-output-len", "0"]
    for name, source in (("sharegpt", sharegpt), ("custom", custom)):
        for tokenizer in ("tiny-llama", "bytes"):
            base = ["--dataset-name", name, *source]
            yield f"{name}/{tokenizer}/plain", tokenizer, base
            yield f"{name}/{tokenizer}/output-len", tokenizer, [*base, "--sharegpt-output-len", "7"]
            yield f"{name}/{tokenizer}/context-len", tokenizer, [*base, "--sharegpt-context-len", "64"]
            yield f"{name}/{tokenizer}/suffix", tokenizer, [*base, "--prompt-suffix", " Be brief. "]
        yield f"{name}/tiny-llama/chat-template", "tiny-llama", [*base, "--apply-chat-template"]
        yield f"{name}/tiny-llama/everything", "tiny-llama", [
            *base, "--apply-chat-template", "--prompt-suffix", " Ja? ", "--sharegpt-output-len", "5", "--sharegpt-context-len", "60",
        ]
        yield f"{name}/bos/plain", "bos", base
        yield f"{name}/tiny-llama/all-rows", "tiny-llama", [*base, "--num-prompts", "1000", "--sharegpt-output-len", "4"]


def make_datasets(reference):
    cases = []
    for name, tokenizer, flags in dataset_cases():
        for seed in SEEDS:
            if name.endswith("/all-rows") and seed != 42:
                continue
            argv = [
                "--backend", "sglang", "--model", "tiny", "--tokenizer", "{TOKENIZER}", "--ready-check-timeout-sec", "0",
                "--base-url", "{URL}", "--num-prompts", "12", "--seed", str(seed), *flags,
            ]
            got = reference.dataset(argv, tokenizer)
            cases.append({"name": f"{name}/seed-{seed}", "tokenizer": tokenizer, "argv": argv, **got})
    return {"cases": cases}, 4


# ---------------------------------------------------------------- payloads.json

COMMON = [
    "--base-url", "{URL}", "--dataset-name", "random-ids", "--random-input-len", "8", "--random-output-len", "4", "--seed", "42",
    "--warmup-requests", "1", "--max-concurrency", "1", "--disable-tqdm", "--output-file", "{DIR}/result.jsonl",
]
NAMED = ["--model", "tiny", "--tokenizer", "{TOKENIZER}"]
LOGPROBS = ["--return-logprob", "--top-logprobs-num", "2", "--token-ids-logprob", "5", "6", "--logprob-start-len", "0"]
PROFILE_ALL = [
    "--profile", "--profile-activities", "CPU", "MEM", "--profile-num-steps", "3", "--profile-by-stage", "--profile-stages", "decode",
    "--profile-start-step", "2", "--profile-steps", "4", "--profile-prefix", "px", "--profile-output-dir", "{DIR}/traces",
]


def payload_cases(backend):
    """(name, flags, environment) of each run; the first one is the bare default."""
    yield "default", [], {}
    yield "no-stream", ["--disable-stream"], {}
    yield "extra-body", ["--extra-request-body", '{"top_p":0.9}'], {}
    yield "extra-body-overrides", ["--extra-request-body", '{"temperature":0.5,"ignore_eos":false,"stream":true,"model":"other","nested":{"b":[1,2.5,null,"é"],"a":1}}'], {}
    for distribution in ("uniform", "distinct", "skewed"):
        yield f"lora-{distribution}", ["--lora-name", "a", "b", "--lora-request-distribution", distribution], {}
    yield "logprobs", LOGPROBS, {}
    yield "top-logprobs-alone", ["--top-logprobs-num", "2"], {}
    yield "sampling", ["--temperature", "0.7", "--top-p", "0.8"], {}
    yield "stop-at-eos", ["--disable-ignore-eos"], {}
    yield "fake-prefill", ["--fake-prefill"], {}
    yield "cache-report", ["--cache-report"], {}
    yield "header", ["--header", "X-A=1", "X-B=2=3", "dropped", "=dropped", "dropped="], {}
    yield "openai-key", [], {"OPENAI_API_KEY": "k"}
    yield "api-key", [], {"API_KEY": "k"}
    yield "both-keys-and-header", ["--header", "Authorization=mine", "--flush-cache", "--profile"], {"OPENAI_API_KEY": "k1", "API_KEY": "k2"}
    yield "flush", ["--flush-cache"], {}
    yield "flush-timeout", ["--flush-cache", "--flush-cache-timeout", "5"], {}
    yield "flush-in-ci", [], {"SGLANG_IS_IN_CI": "true"}
    yield "profile", ["--profile"], {}
    yield "warm-up", ["--warmup-requests", "2", "--random-output-len", "40", "--random-range-ratio", "1.0"], {}
    yield "served-name", ["--served-model-name", "alias"], {}
    yield "no-ready-check", ["--ready-check-timeout-sec", "0", "--warmup-requests", "0"], {}
    if backend in NATIVE:
        yield "routed-experts", ["--return-routed-experts"], {}
    if backend == "sglang":
        yield "token-ids", ["--tokenize-prompt"], {}
        yield "profile-num-steps", ["--profile", "--profile-num-steps", "3"], {}
        yield "profile-by-stage", ["--profile", "--profile-by-stage"], {}
        yield "profile-by-stage-num-steps", ["--profile", "--profile-by-stage", "--profile-num-steps", "3"], {}
        yield "profile-start-step", ["--profile", "--profile-start-step", "2"], {}
        yield "profile-steps", ["--profile", "--profile-steps", "4"], {}
        yield "profile-directory", ["--profile", "--profile-activities", "CPU", "--profile-prefix", "px", "--profile-output-dir", "{DIR}/a/../traces/"], {}
        yield "profile-variable", ["--profile"], {"SGLANG_TORCH_PROFILER_DIR": "{DIR}/traces"}
    if backend in ("sglang", "vllm"):
        yield "profile-all", PROFILE_ALL, {}


def make_payloads(reference):
    cases = []
    tokenizer = str(reference.fixtures / "tokenizers" / "tiny-llama")
    for backend in BACKENDS:
        runs = [(name, [*NAMED, *flags], environ) for name, flags, environ in payload_cases(backend)]
        runs.append(("discovered-names", [], {}))
        for name, flags, environ in runs:
            count = 8 if name.startswith("lora") else 2
            argv = ["--backend", backend, *COMMON, "--num-prompts", str(count), *flags]
            reference.server.reset(tokenizer=tokenizer, raw=name in ("default", "extra-body-overrides"))
            filled = dict(zip(environ, reference.fill(environ.values(), "tiny-llama")))
            status, text = reference.run(argv, environ=filled)
            requests = reference.server.log()
            remove_profile_folders(requests)
            case = {"name": f"{backend}/{name}", "argv": argv, "environ": dict(environ), "exit_status": status}
            if backend == "sglang" and name.startswith(("profile", "flush")):
                before_table = text.partition("\n=")[0]
                case["printed"] = [re.sub(r"/\d{10}\.\d+", "/{TIME}", line) for line in reference.clean(console(before_table), "tiny-llama")]
            case["requests"] = reference.clean(requests, "tiny-llama")
            cases.append(case)
    return {"cases": cases}, 4


def make_routes(reference):
    """Payloads of the routes that only one kind of server has. trt is not waited for: it is polled where it does not answer."""
    cases = []
    for backend in OTHERS:
        for name, flags, environ in payload_cases(backend):
            if "profile" in flags or name.startswith(("profile", "flush", "both", "cache", "fake")):
                continue
            argv = ["--backend", backend, *COMMON, "--num-prompts", "2", *NAMED, "--ready-check-timeout-sec", "0", *flags]
            reference.server.reset()
            status, _ = reference.run(argv, environ=environ)
            requests = reference.server.log()
            case = {"name": f"{backend}/{name}", "argv": argv, "environ": dict(environ), "exit_status": status}
            cases.append({**case, "requests": reference.clean(requests, "tiny-llama")})
    return {"cases": cases}, 4


def remove_profile_folders(requests):
    """The client makes the profile folder on its own machine, under /tmp unless told otherwise; leave none behind."""
    for request in requests:
        folder = request.get("body", {}).get("output_dir") if request["path"] == "/start_profile" else None
        if folder and re.fullmatch(r"/tmp/\d{10}\.\d+", folder):
            os.rmdir(folder)


# ---------------------------------------------------------------- results.json

# Keys of the result line whose numbers depend on the clock.
TIMED = re.compile(r"duration|concurrency|request_goodput|ttfts|itls|\w+_throughput|(mean|median|std|p90|p95|p99)_\w+_ms")
RESULT = [
    "--base-url", "{URL}", *NAMED, "--dataset-name", "random-ids", "--random-input-len", "12", "--random-output-len", "9",
    "--random-range-ratio", "0.5", "--num-prompts", "5", "--seed", "42", "--disable-tqdm", "--output-details", "--output-file", "{DIR}/result.jsonl",
]
ONE_AT_A_TIME = ["--max-concurrency", "1"]


def result_cases():
    """(name, backend, flags, server settings, keep the console text)"""
    for backend in BACKENDS:
        yield "plain", backend, ONE_AT_A_TIME, {"sizes": [1, 2]}, backend == "sglang"
        yield "counted", backend, ONE_AT_A_TIME, {"sizes": [2, 1, 3], "usage": True, "short": True}, False
        yield "no-stream", backend, [*ONE_AT_A_TIME, "--disable-stream"], {"usage": True}, False
    yield "at-once", "sglang", [], {"sizes": [3]}, True
    yield "paced", "sglang", ["--request-rate", "50", "--tag", "t1"], {}, True
    yield "no-details", "sglang", [*ONE_AT_A_TIME, "--num-prompts", "1"], {}, False
    yield "token-ids", "sglang", [*ONE_AT_A_TIME, "--tokenize-prompt"], {}, False
    for backend in ("sglang", "sglang-oai-chat"):
        yield "goodput", backend, [*ONE_AT_A_TIME, "--goodput", "ttft:1000", "tpot:100", "e2el:5000"], {}, backend == "sglang"
        yield "accept-length", backend, ONE_AT_A_TIME, {"accept": 2.5, "sizes": [2]}, True
        yield "one-failure", backend, ONE_AT_A_TIME, {"fail": [3]}, backend == "sglang"
    yield "goodput-missed", "sglang", [*ONE_AT_A_TIME, "--goodput", "e2el:0.001", "ttft:0.0005", "ttft:1000.5"], {"fail": [2]}, True
    for backend in (*NATIVE, "sglang-oai-chat"):
        yield "cache-report", backend, [*ONE_AT_A_TIME, "--cache-report"], {"cached": True, "usage": True}, True
    yield "cache-report-empty", "sglang", [*ONE_AT_A_TIME, "--cache-report"], {}, True
    yield "cache-report-no-stream", "sglang-oai-chat", [*ONE_AT_A_TIME, "--cache-report", "--disable-stream"], {"cached": True, "usage": True}, False
    yield "reasoning", "sglang-oai-chat", ONE_AT_A_TIME, {"reasoning": True, "usage": True}, False


def without_times(key, value):
    """Numbers that depend on the clock become "{NUMBER}"; zeros stay, as they mean that nothing was measured. An
    infinite rate becomes a string, to keep the golden file valid JSON (`raw_start` shows how the client writes it)."""
    if isinstance(value, list):
        return [without_times(key, v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "Infinity"
    return "{NUMBER}" if TIMED.fullmatch(key) and value else value


def make_results(reference):
    cases = []
    for name, backend, flags, settings, keep_console in result_cases():
        argv = ["--backend", backend, *RESULT, *flags]
        if name == "no-details":
            argv.remove("--output-details")
        reference.server.reset(replies=True, **settings)
        line = reference.scratch / "result.jsonl"
        line.unlink(missing_ok=True)
        status, text = reference.run(argv)
        raw = line.read_text()
        result = json.loads(raw)
        case = {"name": f"{backend}/{name}", "argv": argv, "server": settings, "exit_status": status}
        case["raw_start"] = raw[:raw.index(', "server_info"')]
        case["keys"] = list(result)
        case["line"] = {k: reference.clean(without_times(k, v), "tiny-llama") for k, v in result.items()}
        case["itl_counts"] = [len(itl) for itl in result.get("itls", [])]
        if keep_console:
            case["console"] = reference.clean(console(text), "tiny-llama")
        exchanges = [{"body": e["body"], "reply": e["reply"]} for e in reference.server.log() if "reply" in e]
        if "--max-concurrency" not in argv:
            exchanges[1:] = sorted(exchanges[1:], key=json.dumps)  # they came in any order; the first is the warm-up
        case["exchanges"] = exchanges
        cases.append(case)
    return {"cases": cases}, 4


# ---------------------------------------------------------------- arrivals.json


def make_arrivals(reference):
    cases = []
    for seed in SEEDS:
        for distribution in (None, "uniform", "skewed"):
            argv = [
                "--backend", "sglang", *COMMON, *NAMED, "--num-prompts", "20", "--request-rate", "10", "--seed", str(seed),
            ]
            if distribution:
                argv += ["--lora-name", "a", "b", "c", "--lora-request-distribution", distribution]
            reference.server.reset(gap_ms=0)
            notes = reference.scratch / "sleeps"
            notes.unlink(missing_ok=True)
            status, _ = reference.run(argv, before=lambda: note_sleeps(notes))
            sleeps = [json.loads(l) for l in notes.read_text().splitlines()]
            assert status == 0 and len(sleeps) == 21 and sleeps[0] == 1.0, (status, sleeps)
            sent = [e["body"] for e in reference.server.log() if e["path"] == "/generate"][1:]
            case = {"name": f"{distribution or 'no-lora'}/seed-{seed}", "argv": argv, "gaps": sleeps[1:]}
            if distribution:
                case["lora"] = [body["lora_path"] for body in sent]
            cases.append(case)
    return {"cases": cases}, 3


def note_sleeps(path):
    """Write down how long each `asyncio.sleep` was to last, and do not sleep. The first one follows the warm-up."""
    real = asyncio.sleep

    async def noted(delay, *rest):
        if delay:
            with path.open("a") as file:
                file.write(json.dumps(float(delay)) + "\n")
        return await real(0, *rest)

    asyncio.sleep = noted


# ---------------------------------------------------------------- main


def layout(value, depth, indent=0):
    """JSON with line breaks down to `depth` levels, one item a line below that."""
    if depth == 0 or not isinstance(value, (dict, list)) or not value:
        return json.dumps(value, allow_nan=False)
    pad = "\n" + " " * (indent + 1)
    if isinstance(value, dict):
        items, ends = [json.dumps(k) + ": " + layout(v, depth - 1, indent + 1) for k, v in value.items()], "{}"
    elif all(not isinstance(v, (dict, list)) and not (isinstance(v, str) and len(v) > 40) for v in value):
        return json.dumps(value, allow_nan=False)
    else:
        items, ends = [layout(v, depth - 1, indent + 1) for v in value], "[]"
    return ends[0] + pad + ("," + pad).join(items) + "\n" + " " * indent + ends[1]


MAKERS = {"datasets": make_datasets, "payloads": make_payloads, "routes": make_routes, "results": make_results, "arrivals": make_arrivals, **structured.MAKERS, **steady.MAKERS, **tables.MAKERS, **pictures.MAKERS, **matrix.MAKERS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", type=Path, help="interpreter of the environment that holds sglang (default: this one)")
    parser.add_argument("--fixtures", type=Path, default=HERE.parent / "fixtures", help="folder with tokenizers/ and the two data files")
    parser.add_argument("--out", type=Path, default=HERE, help="where the golden files go")
    parser.add_argument("--only", nargs="+", choices=MAKERS, default=list(MAKERS))
    given = parser.parse_args()
    if given.python and given.python.absolute() != Path(sys.executable):
        python = str(given.python.absolute())
        args = ["--fixtures", str(given.fixtures), "--out", str(given.out), "--only", *given.only]
        os.execv(python, [python, str(Path(__file__).resolve()), *args])

    server = CaptureServer()
    scratch = Path(tempfile.mkdtemp(prefix="golden-"))
    try:
        reference = Reference(given.fixtures.resolve(), server, scratch)
        for name in given.only:
            started = time.monotonic()
            golden, depth = MAKERS[name](reference)
            golden = {"made_with": reference.versions, **golden}
            (given.out / f"{name}.json").write_text(layout(golden, depth) + "\n")
            print(f"{name}.json: {len(golden['cases'])} cases in {time.monotonic() - started:.0f} s")
    finally:
        server.stop()
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
