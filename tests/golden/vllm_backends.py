#!/usr/bin/env python3
"""Records what `vllm bench serve` sends to each of its other backends, and what it makes of the answers.

    vllm_backends.py --python VENV/bin/python [--out DIR]

VENV must hold vllm and soundfile (see PROVENANCE_VLLM.md). Text and image backends are whole runs of the command; the audio
backend is its request function, called with recordings that are made here, so that no data set stands in between.
"""

import argparse
import asyncio
import email.parser
import email.policy
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path

import make_golden as golden
import make_vllm

HERE = Path(__file__).resolve().parent
WORDS = golden.WORDS


# ---------------------------------------------------------------- the server


def form(kind, raw):
    """The fields of a form, in order: name, file name, type and text; of a file its length and hash."""
    head = f"Content-Type: {kind}\r\n\r\n".encode()
    parts = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + raw).iter_parts()
    fields = []
    for part in parts:
        value = part.get_payload(decode=True)
        field = {"name": part.get_param("name", header="content-disposition"), "filename": part.get_filename()}
        if field["filename"] is None:
            field["value"] = value.decode()
        else:
            field |= {"type": part.get("content-type"), "bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
        fields.append(field)
    return fields


def event(name, **fields):
    return f"event: {name}\ndata: " + json.dumps({"type": name, **fields}, separators=(",", ":"), ensure_ascii=False) + "\n\n"


def responses(body, short):
    """The events of a response: reasoning, then text, as vLLM sends them."""
    count = body["max_output_tokens"]
    words = [WORDS[(len(body["input"]) + k) % len(WORDS)] for k in range(count)]
    usage = {"input_tokens": len(body["input"]), "output_tokens": count, "total_tokens": len(body["input"]) + count}
    yield event("response.created", response={"object": "response", "status": "in_progress", "output": [], "error": None}, sequence_number=0)
    yield event("response.output_item.added", item={"type": "message", "status": "in_progress"}, output_index=0)
    for k, word in enumerate(words):
        kind = "reasoning_text" if k == 0 and count > 2 else "output_text"
        yield event(f"response.{kind}.delta", delta=word, item_id="i", output_index=0, content_index=0, logprobs=[])
    if not short:
        yield event("response.output_text.done", text="".join(words), item_id="i")
        end = {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "error": None, "usage": usage}
        yield event("response.completed", response=end)


def transcription(fields):
    """The frames of a transcription: each counts, the last one ends."""
    count = int(next(field["value"] for field in fields if field["name"] == "max_completion_tokens"))
    for k in range(count):
        choice = {"delta": {"content": WORDS[k % len(WORDS)]}, "finish_reason": "length" if k + 1 == count else None}
        usage = {"prompt_tokens": 99, "completion_tokens": k + 1, "total_tokens": 100 + k}
        yield "data: " + json.dumps({"object": "transcription.chunk", "choices": [choice], "usage": usage}, ensure_ascii=False) + "\n\n"
    yield "data: [DONE]\n\n"


def pooled(path, body):
    """The rows and the prompt tokens of an answer."""
    texts = body.get("input", body.get("documents", ""))
    texts = texts if isinstance(texts, list) else [texts]
    tokens = sum(len(str(text)) for text in texts) + len(json.dumps(body.get("messages", "")))
    if path.endswith("rerank"):
        rows = [{"index": k, "document": {"text": text}, "relevance_score": 0.5} for k, text in enumerate(texts)]
        return {"id": "r", "model": body["model"], "usage": {"prompt_tokens": tokens, "total_tokens": tokens}, "results": rows}
    key = "data" if path.endswith("pooling") else "embedding"
    rows = [{"index": k, "object": key, key: [0.5, -0.5]} for k in range(len(texts))]
    return {"object": "list", "model": body["model"], "data": rows, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}


class Handler(golden.CaptureHandler):
    def answer(self):
        if not self.path.endswith(("/responses", "/transcriptions", "/translations", "embeddings", "/pooling", "/rerank")):
            return super().answer()
        raw = self.rfile.read(int(self.headers["content-length"])) if "content-length" in self.headers else self.chunks()
        kind = self.headers["content-type"]
        headers = {k.lower(): v for k, v in self.headers.items()}
        entry = {"path": self.path, "headers": headers}
        if kind.startswith("multipart/form-data"):
            entry["form"] = form(kind, raw)
        else:
            entry["body"] = json.loads(raw)
        log, settings = self.state.log, self.state.settings
        number, self.state.generations = self.state.generations, self.state.generations + 1
        log.append(entry)
        metadata = None
        if number in settings["fail"]:
            kept = {"status": 500, "type": "text/plain", "writes": ["engine on strike\n"]}
        elif self.path.endswith("/responses"):
            kept = {"status": 200, "type": "text/event-stream", "writes": list(responses(entry["body"], settings["short"]))}
        elif "form" in entry:
            kept = {"status": 200, "type": "text/event-stream", "writes": list(transcription(entry["form"]))}
        else:
            answer = pooled(self.path, entry["body"])
            kept = {"status": 200, "type": "application/json", "writes": [json.dumps(answer)]}
            if entry["body"].get("encoding_format") in ("bytes", "bytes_only"):
                kept |= {"type": "application/octet-stream", "writes": ["rows of bytes"]}
                if entry["body"]["encoding_format"] == "bytes":
                    kept["metadata"] = metadata = json.dumps({"usage": answer["usage"]})
        entry["reply"] = kept
        self.send_response(kept["status"])
        self.send_header("Content-Type", kept["type"])
        if metadata:
            self.send_header("metadata", metadata)
        data = "".join(kept["writes"]).encode()
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def chunks(self):
        """A body in the chunked coding."""
        raw = b""
        while size := int(self.rfile.readline(), 16):
            raw += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return raw


golden.CaptureHandler = Handler


# ---------------------------------------------------------------- runs

ENDPOINTS = {
    "openai-responses": "/v1/responses", "openai-embeddings": "/v1/embeddings", "openai-embeddings-chat": "/v1/embeddings",
    "openai-embeddings-clip": "/v1/embeddings", "openai-embeddings-vlm2vec": "/v1/embeddings", "infinity-embeddings": "/embeddings",
    "infinity-embeddings-clip": "/embeddings", "vllm-pooling": "/pooling", "vllm-rerank": "/v1/rerank",
}
RANDOM = ["--random-input-len", "8", "--random-output-len", "4"]
RERANK = ["--dataset-name", "random-rerank", "--random-input-len", "24", "--random-batch-size", "2"]
IMAGES = ["--dataset-name", "sharegpt", "--dataset-path", "{FIXTURES}/vllm_sharegpt_images.json", "--disable-shuffle"]


def run_cases():
    """(name, backend, flags, settings of the capture server)."""
    for backend in ENDPOINTS:
        data = RERANK if backend == "vllm-rerank" else RANDOM
        yield f"{backend}/default", backend, data, {}
        yield f"{backend}/one-failure", backend, data, {"fail": [1]}
        if backend != "vllm-rerank":  # which leaves these out, see the book
            yield f"{backend}/extra-body", backend, [*data, "--extra-body", '{"dimensions": 4, "model": "other"}', "--ignore-eos"], {}
        if backend != "openai-responses":
            yield f"{backend}/sampling-is-dropped", backend, [*data, "--temperature", "0.5", "--top-p", "0.9"], {}
    for backend in ("openai-embeddings", "infinity-embeddings", "vllm-pooling", "openai-embeddings-chat"):
        yield f"{backend}/batches", backend, [*RANDOM, "--random-batch-size", "2"], {}
    for backend in ("openai-embeddings-chat", "openai-embeddings-clip", "openai-embeddings-vlm2vec", "infinity-embeddings",
                    "infinity-embeddings-clip", "openai-embeddings", "openai-responses", "vllm-pooling"):
        yield f"{backend}/images", backend, IMAGES, {}
    yield "vllm-rerank/no-reranker", "vllm-rerank", [*RERANK, "--no-reranker"], {}
    yield "openai-embeddings/bytes", "openai-embeddings", [*RANDOM, "--extra-body", '{"encoding_format": "bytes"}'], {}
    yield "vllm-pooling/bytes-only", "vllm-pooling", [*RANDOM, "--extra-body", '{"encoding_format": "bytes_only"}'], {}
    yield "openai-responses/sampling", "openai-responses", [*RANDOM, "--temperature", "0.5", "--top-p", "0.9"], {}
    yield "openai-responses/no-terminal-event", "openai-responses", RANDOM, {"short": True}
    yield "openai-embeddings/adapters", "openai-embeddings", [*RANDOM, "--lora-modules", "a", "b", "--lora-assignment", "round-robin"], {}


def make_runs(reference):
    for name, backend, flags, settings in run_cases():
        reference.server.reset(**settings)
        argv = [
            *make_vllm.COMMON, *make_vllm.SAVED, "--backend", backend, "--endpoint", ENDPOINTS[backend], "--request-id-prefix", "r-",
            "--seed", "7", "--num-prompts", "4", *flags,
        ]
        status, printed, result = reference.run(argv, environ={"OPENAI_API_KEY": "secret"})
        assert status == 0 and result, (name, status)
        lines = printed.splitlines()
        first = next(at for at, line in enumerate(lines) if "Serving Benchmark Result" in line)
        last = next(at for at, line in enumerate(lines) if line == "=" * 50)
        exchanges = [entry for entry in reference.server.log() if "reply" in entry]
        yield {
            "name": name, "argv": argv, "environ": {"OPENAI_API_KEY": "secret"}, "table": lines[first : last + 1], "keys": list(result),
            "result": reference.clean(result, "tiny-llama"), "exchanges": reference.clean(exchanges, "tiny-llama"),
        }


# ---------------------------------------------------------------- recordings


def recording(seconds):
    """A 16-bit recording of one channel, 8000 samples a second, as a file."""
    samples = b"".join((k * 37 % 2000 - 1000).to_bytes(2, "little", signed=True) for k in range(int(seconds * 8000)))
    header = b"RIFF" + (36 + len(samples)).to_bytes(4, "little") + b"WAVEfmt " + bytes.fromhex("1000000001000100401f0000803e000002001000")
    return header + b"data" + len(samples).to_bytes(4, "little") + samples


def audio_cases():
    """(name, endpoint, arguments of the request)."""
    plain = {"prompt": "not sent", "prompt_len": 5, "output_len": 3, "model": "tiny"}
    yield "transcriptions", "/v1/audio/transcriptions", plain
    yield "translations", "/v1/audio/translations", plain
    extra = {"language": "de", "temperature": 0, "model": "other", "prompt": "say", "word": ["a"], "more": {"b": True}}
    yield "extra-body", "/v1/audio/transcriptions", {**plain, "extra_body": extra, "ignore_eos": True, "request_id": "r-0"}


def make_audio(reference):
    from vllm.benchmarks.lib.endpoint_request_func import RequestFuncInput, async_request_openai_audio

    path = reference.scratch / 'a "quoted" name.wav'
    path.write_bytes(recording(0.25))
    for name, endpoint, arguments in audio_cases():
        reference.server.reset()
        kept = reference.scratch / "output.json"

        def work():
            import aiohttp

            async def call():
                asked = RequestFuncInput(**arguments, api_url=reference.server.url + endpoint, multi_modal_content={"audio_path": str(path)})
                async with aiohttp.ClientSession() as session:
                    return await async_request_openai_audio(asked, session)

            output = asyncio.run(call())
            fields = ("generated_text", "success", "output_tokens", "prompt_len", "error", "input_audio_duration")
            kept.write_text(json.dumps({key: getattr(output, key) for key in fields} | {"gaps": len(output.itl)}))

        status, _ = reference.fork(work)
        assert status == 0, (name, status)
        exchanges = reference.clean(reference.server.log(), "tiny-llama")
        yield {"name": f"openai-audio/{name}", "arguments": arguments, "output": json.loads(kept.read_text()), "exchanges": exchanges}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the interpreter that has vllm; this script starts itself with it")
    parser.add_argument("--fixtures", type=Path, default=HERE.parent / "fixtures")
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    if arguments.python:
        words = [word for word in sys.argv[1:] if word not in ("--python", arguments.python)]
        os.execv(arguments.python, [arguments.python, __file__, *words])
    # The server's process is made before anything starts threads.
    server = golden.CaptureServer()
    try:
        with tempfile.TemporaryDirectory() as scratch:
            reference = make_vllm.Reference(arguments.fixtures.resolve(), server, Path(scratch))
            cases = [*make_runs(reference), *make_audio(reference)]
    finally:
        server.stop()
    path = arguments.out / "vllm_backends.json"
    body = ",\n".join(json.dumps(make_vllm.finite(case), ensure_ascii=False) for case in cases)
    path.write_text(f'{{"made_with": {json.dumps(reference.versions)}, "cases": [\n{body}\n]}}\n')
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
