#!/usr/bin/env python3
"""Records which requests vLLM's scripts `benchmark_prefix_caching.py` and `benchmark_prioritization.py` make for a seed.

    vllm_offline.py --python VENV/bin/python --scripts DIR [--out DIR]

VENV must hold transformers; DIR holds the two scripts (see PROVENANCE_VLLM.md). Their own `main` runs; in place of the engine stands
one that keeps what it is given. Nothing is fetched from the network.
"""

import argparse
import contextlib
import importlib.util
import io
import json
import os
import platform
import random
import sys
import tempfile
import types
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEEDS = (0, 1, 42)
SHAREGPT = "{FIXTURES}/sharegpt_small.json"


class Vocabulary:
    """A tokenizer whose vocabulary is in the order of its ids. The tokenizer's own order is another one in every process."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def __getattr__(self, name):
        return getattr(self.tokenizer, name)

    def __call__(self, text):
        return self.tokenizer(text)

    def get_vocab(self):
        return dict(sorted(self.tokenizer.get_vocab().items(), key=lambda item: item[1]))


class Engine:
    """Keeps what it is given."""

    kept = None

    def __init__(self, **_):
        config = types.SimpleNamespace(max_model_len=1 << 30)
        self.llm_engine = types.SimpleNamespace(model_config=config)

    @classmethod
    def from_engine_args(cls, _):
        return cls()

    def generate(self, prompts, sampling_params, priority=None, use_tqdm=False):
        Engine.kept = {"prompts": list(prompts), "sampling": sampling_params, "priorities": priority}


class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model")
        parser.add_argument("--tokenizer")
        parser.add_argument("--seed", type=int, default=0)
        parser.add_argument("--trust-remote-code", action="store_true")
        return parser

    @staticmethod
    def from_cli_args(_):
        return EngineArgs()


def stand_in(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module


def prepare():
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
    import dataclasses

    import transformers

    load = transformers.AutoTokenizer.from_pretrained
    transformers.AutoTokenizer.from_pretrained = lambda name, **_: load(name)
    dataclasses.asdict = lambda _: {}
    stand_in("vllm", LLM=Engine, SamplingParams=lambda **fields: fields)
    stand_in("vllm.engine")
    stand_in("vllm.engine.arg_utils", EngineArgs=EngineArgs)
    stand_in("vllm.utils", FlexibleArgumentParser=argparse.ArgumentParser)
    stand_in("vllm.utils.argparse_utils", FlexibleArgumentParser=argparse.ArgumentParser)
    stand_in("vllm.tokenizers", get_tokenizer=lambda name, **_: Vocabulary(load(name)))


def cases():
    """(command, tokenizer, flags)"""
    made = ["--num-prompts", "5", "--repeat-count", "3", "--input-length-range", "10:20"]
    read = ["--dataset-path", SHAREGPT, "--num-prompts", "6", "--repeat-count", "2"]
    for tokenizer in ("tiny-llama", "bytes", "bos"):
        yield "prefix-caching", tokenizer, made
        yield "prefix-caching", tokenizer, [*made, "--prefix-len", "6", "--output-len", "3"]
        yield "prefix-caching", tokenizer, [*made, "--prefix-len", "14"]
        yield "prefix-caching", tokenizer, [*read, "--input-length-range", "8:200"]
    yield "prefix-caching", "tiny-llama", ["--num-prompts", "4", "--input-length-range", "7:7"]
    yield "prefix-caching", "tiny-llama", [*read, "--input-length-range", "0:12", "--output-len", "5"]
    fixed = ["--input-len", "9", "--output-len", "4", "--num-prompts", "12"]
    file = ["--dataset", SHAREGPT, "--num-prompts", "8"]
    yield "prioritization", "tiny-llama", fixed
    yield "prioritization", "tiny-llama", [*fixed, "--n", "2"]
    for tokenizer in ("tiny-llama", "bytes", "bos"):
        yield "prioritization", tokenizer, file
        yield "prioritization", tokenizer, [*file, "--output-len", "6"]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="the interpreter that has transformers; this script starts itself with it")
    parser.add_argument("--scripts", type=Path, required=True)
    parser.add_argument("--fixtures", type=Path, default=HERE.parent / "fixtures")
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    if arguments.python:
        words = [word for word in sys.argv[1:] if word not in ("--python", arguments.python)]
        os.execv(arguments.python, [arguments.python, __file__, *words])
    prepare()
    scripts = {
        "prefix-caching": load(arguments.scripts / "benchmark_prefix_caching.py"),
        "prioritization": load(arguments.scripts / "benchmark_prioritization.py"),
    }
    fixtures = str(arguments.fixtures.resolve())
    # The scripts fail at a row without conversations, where all other tools leave it out.
    rows = json.loads(Path(SHAREGPT.replace("{FIXTURES}", fixtures)).read_text())
    scratch = tempfile.TemporaryDirectory()
    file = Path(scratch.name, "sharegpt.json")
    file.write_text(json.dumps([row for row in rows if "conversations" in row]))
    kept = []
    for number, (command, tokenizer, flags) in enumerate(cases()):
        for seed in SEEDS:
            name = f"{command}/{tokenizer}/{number}/seed-{seed}"
            argv = [*flags, "--seed", str(seed)]
            place = f"{fixtures}/tokenizers/{tokenizer}"
            words = [str(file) if word.startswith("{FIXTURES}") else word for word in argv]
            read = scripts[command].create_argument_parser().parse_args([*words, "--model", place, "--tokenizer", place])
            random.seed(1 << 20)
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                scripts[command].main(read)
            lines = [line.replace(str(file), SHAREGPT) for line in out.getvalue().splitlines()]
            lines = [line for line in lines if not line.startswith(("cost time", "Namespace", "Throughput"))]
            sampling = Engine.kept["sampling"]
            row = {"name": name, "command": command, "tokenizer": tokenizer, "argv": argv, "printed": lines, "prompts": Engine.kept["prompts"]}
            if command == "prioritization":
                row |= {"priorities": Engine.kept["priorities"], "output_lens": [one["max_tokens"] for one in sampling]}
                sampling = sampling[0]
            kept.append(row | {"sampling": sampling})
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in ("transformers", "tokenizers")}
    body = ",\n".join(json.dumps(case, ensure_ascii=False) for case in kept)
    path = arguments.out / "vllm_offline.json"
    path.write_text(f'{{"made_with": {json.dumps(versions)}, "cases": [\n{body}\n]}}\n')
    print(f"{path}: {len(kept)} cases")


if __name__ == "__main__":
    main()
