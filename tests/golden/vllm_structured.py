#!/usr/bin/env python3
"""Records what vLLM's `benchmark_serving_structured_output.py` does, as golden file for bench-vllm structured-output.

    vllm_structured.py --python VENV/bin/python --scripts DIR [--out DIR]

VENV must hold vllm, pandas and datasets; DIR is the folder `benchmarks` of vLLM's source distribution (see
PROVENANCE_VLLM.md). The script's own parser and `main` are run with real command lines. Of the prompts only what is not the
script's prose is kept: the random prefix, and what comes from our own data.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import sys
import tempfile
import types
from importlib import metadata
from pathlib import Path

import make_golden as golden
import make_vllm

HERE = Path(__file__).resolve().parent
UNIQUE = re.compile(r"__optional_field_[0-9a-f-]{36}$")

# What the server says, in turn: some of it is of the form asked for.
REPLIES = {
    "json": ['{"name": "Ada", "email": "a@b"}', "Here it is:\n{ }\nDone.", '{"name": "Ad', "no", '{"a": [1, 2}'],
    "regex": ["turing@enigma.com\n", "turing@enigma.com", "alan.turing@enigma.com\n", "t@e.com\nand more"],
    "choice": ["Positive", "Negative", "positive", "Positive."],
    "grammar": ["SELECT col_1  from table_2  where col_2 = 1 ", "SELECT 1"],
    None: ["Positive", "{}", "t@e.com\n", "words"],
}
NUMBERS = itertools.count()


class Reply(make_vllm.Reply):
    """One of the replies for the constraint, in pieces of up to five characters. Runs in the server's process."""

    def __init__(self, body, settings):
        super().__init__(body, settings)
        kind = next(iter(body.get("structured_outputs", {})), None)
        texts = REPLIES[kind]
        text = texts[next(NUMBERS) % len(texts)]
        self.words = [text[at : at + 5] for at in range(0, len(text), 5)]
        self.count, self.finish = len(self.words), "stop"


golden.Reply = Reply


class Script(make_vllm.Reference):
    """Runs the script, each time in a fork of this process."""

    def __init__(self, fixtures, server, scratch, folder):
        super().__init__(fixtures, server, scratch)
        sys.path.insert(0, str(folder))
        import benchmark_serving_structured_output as script
        import datasets

        self.script = script
        self.versions |= {name: metadata.version(name) for name in ("pandas", "regex")}

        def from_copy(name, split):
            assert (name, split) == ("NousResearch/json-mode-eval", "train")
            return datasets.Dataset.from_list([json.loads(line) for line in (fixtures / "vllm_json_mode.jsonl").open()])

        script.datasets = types.SimpleNamespace(load_dataset=from_copy)

    def run(self, argv, tokenizer="tiny-llama", environ=()):
        """A whole run; gives (exit status, standard output, name of the result file, result)."""
        for old in self.scratch.glob("*.txt"):
            old.unlink()

        def work():
            self.script.main(self.script.create_argument_parser().parse_args(self.fill(argv, tokenizer)))

        status, printed = self.fork(work)
        found = list(self.scratch.glob("*.txt"))
        if not found:
            return status, printed, None, None
        return status, printed, found[0].name, json.loads(found[0].read_text())

    def again(self, text, tokenizer):
        """What is left of a text that was tokenized."""
        from transformers import AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(self.fixtures / "tokenizers" / tokenizer)
        return tokenizer.decode(tokenizer(text, add_special_tokens=False).input_ids)

    def intervals(self, rate, burstiness, count, seed):
        """When the script would send each of `count` requests, if sending took no time."""
        path = self.scratch / "intervals.json"

        def work():
            import numpy

            waits, real = [], self.script.asyncio

            async def sleep(seconds):
                waits.append(float(seconds))

            self.script.asyncio = types.SimpleNamespace(sleep=sleep)

            async def all_of_them():
                async for _ in self.script.get_request(list(range(count)), rate, burstiness):
                    pass

            numpy.random.seed(seed)
            asyncio.run(all_of_them())
            self.script.asyncio = real
            path.write_text(json.dumps([0.0, *itertools.accumulate(waits)][:count]))

        status, _ = self.fork(work)
        assert status == 0, (rate, burstiness, status)
        return json.loads(path.read_text())


COMMON = ["--base-url", "{URL}", "--model", "models/tiny", "--tokenizer", "{TOKENIZER}", "--max-concurrency", "1", "--disable-tqdm"]
CHAT = ["--backend", "openai-chat", "--endpoint", "/v1/chat/completions"]
KINDS = ("json", "json-unique", "grammar", "regex", "choice", "xgrammar_bench")


def run_cases():
    """(name, tokenizer, flags, settings of the capture server)."""
    few = ["--num-prompts", "6", "--output-len", "20", "--save-results", "--result-dir", "{DIR}"]
    for kind in KINDS:
        yield kind, "tiny-llama", [*few, "--dataset", kind], {}
        yield f"chat/{kind}", "tiny-llama", [*few, *CHAT, "--dataset", kind], {}
    yield "schema", "tiny-llama", [*few, "--json-schema-path", "{FIXTURES}/vllm_schema.json"], {}
    yield "schema-unique", "tiny-llama", [*few, "--dataset", "json-unique", "--json-schema-path", "{FIXTURES}/vllm_schema.json"], {}
    for backend in ("openai", "lmdeploy", "scalellm", "sglang", "llama.cpp"):
        yield f"backend/{backend}", "tiny-llama", [*few, "--dataset", "choice", "--backend", backend], {}
    many = ["--num-prompts", "20", "--output-len", "3", "--save-results", "--result-dir", "{DIR}", "--dataset", "choice"]
    for ratio in ("0.5", "0.3", "0.99", "0.04"):
        for seed in (0, 1, 42):
            yield f"ratio/{ratio}/seed-{seed}", "tiny-llama", [*many, "--structured-output-ratio", ratio, "--seed", str(seed)], {}
    yield "ratio/none", "tiny-llama", [*many, "--no-structured-output"], {}
    # From so many on, another way of drawing is used.
    yield "ratio/large", "tiny-llama", [*many, "--num-prompts", "60", "--structured-output-ratio", "0.06"], {}
    for tokenizer in ("bytes", "bos", "tiny-llama"):
        for seed in (0, 42):
            yield f"prefix/{tokenizer}/seed-{seed}", tokenizer, [*many, "--num-prompts", "3", "--random-prefix-len", "9", "--seed", str(seed)], {}
    yield "ignore-eos", "tiny-llama", [*few, "--dataset", "regex", "--ignore-eos"], {}
    latencies = ["--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "25,50,99.9", "--goodput", "ttft:5000", "e2el:9000"]
    yield "everything", "tiny-llama", [*few, *latencies, "--request-rate", "50", "--burstiness", "2.5"], {}
    yield "one-failure", "tiny-llama", [*few, "--dataset", "choice"], {"fail": [2]}
    yield "counted", "tiny-llama", [*few, "--dataset", "json"], {"usage": True}


def cleaned(body, own):
    """A body without the script's prose; `own` says which beginning of the prompt is not that."""
    body = dict(body)
    if "prompt" in body:
        body["prompt"] = own(body["prompt"])
    else:
        parts = body["messages"][0]["content"]
        assert len(body["messages"]) == len(parts) == 1
        body["messages"] = [{"role": "user", "content": [{"type": "text", "text": own(parts[0]["text"])}]}]
    constraint = body.get("structured_outputs", {}).get("json")
    if isinstance(constraint, dict):
        properties = constraint.get("properties", {})
        named = {UNIQUE.sub("__optional_field_{UUID}", name): field for name, field in properties.items()}
        if named.keys() != properties.keys():
            named["__optional_field_{UUID}"].pop("description")
            body["structured_outputs"] = {"json": {**constraint, "properties": named}}
    grammar = body.get("structured_outputs", {}).get("grammar")
    if grammar:
        body["structured_outputs"] = {"grammar": [line.strip() for line in grammar.splitlines() if line.strip()]}
    return body


def make_runs(script):
    plain = {}
    for name, tokenizer, flags, settings in run_cases():
        script.server.reset(**settings, replies=True)
        argv = [*COMMON, *flags]
        status, printed, file, result = script.run(argv, tokenizer)
        assert status == 0 and result, (name, status)
        calls = make_vllm.generations(script.server.log())
        text = calls[0]["body"].get("prompt")
        if name == "choice":
            plain["choice"] = text

        def own(prompt):
            if "xgrammar" in name:
                return prompt
            if not name.startswith("prefix"):
                return ""
            prose = script.again(plain["choice"], tokenizer)
            assert prompt.endswith(prose), (prompt, prose)
            return prompt[: len(prompt) - len(prose)]

        exchanges = [{"path": call["path"], "body": cleaned(call["body"], own), "reply": call["reply"]} for call in calls]
        lines = printed.splitlines()
        first = next(at for at, line in enumerate(lines) if "Serving Benchmark Result" in line)
        last = next(at for at, line in enumerate(lines) if line == "=" * 50)
        if "xgrammar" not in name:
            del result["input_lens"]
        case = {
            "name": name, "tokenizer": tokenizer, "argv": argv, "table": lines[first : last + 1], "after": lines[last + 1 :], "file": file,
            "keys": list(result), "result": result, "exchanges": exchanges,
        }
        yield script.clean(case, tokenizer)


def make_arrivals(script):
    for burstiness in (0.3, 1.0, 2.5):
        for seed in (0, 1, 42):
            offsets = script.intervals(10.0, burstiness, 20, seed)
            yield {"name": f"arrivals/burstiness-{burstiness}/seed-{seed}", "rate": 10.0, "burstiness": burstiness, "seed": seed, "offsets": offsets}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the interpreter that has vllm; this script starts itself with it")
    parser.add_argument("--scripts", type=Path, required=True, help="the folder `benchmarks` of vLLM's sources")
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
            script = Script(arguments.fixtures.resolve(), server, Path(scratch), arguments.scripts.resolve())
            cases = [*make_runs(script), *make_arrivals(script)]
    finally:
        server.stop()
    path = arguments.out / "vllm_structured.json"
    body = ",\n".join(json.dumps(make_vllm.finite(case), ensure_ascii=False) for case in cases)
    path.write_text(f'{{"made_with": {json.dumps(script.versions)}, "cases": [\n{body}\n]}}\n')
    print(f"{path}: {len(cases)} cases")


if __name__ == "__main__":
    main()
