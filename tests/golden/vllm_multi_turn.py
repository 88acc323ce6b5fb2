#!/usr/bin/env python3
"""Records what vLLM's `multi_turn/benchmark_serving_multi_turn.py` and `convert_sharegpt_to_openai.py` really do, for `bench-vllm
multi-turn` and `bench-vllm convert-sharegpt`, into `vllm_multi_turn.json`.

    VENV/bin/python vllm_multi_turn.py --scripts DIR

VENV holds transformers, aiohttp, pandas and tqdm; DIR is the folder `benchmarks` of the source distribution. Nothing of the
scripts is kept here. Where they wrap text in words of their own, those are replaced by ours before they run, so that whole texts can be
compared. `PROVENANCE_VLLM.md` tells more.
"""

import argparse
import hashlib
import json
import os
import re
import runpy
import shutil
import sys
import tempfile
import threading
import traceback
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import aiohttp
import numpy
import pandas
import tqdm
import transformers
from transformers import AutoTokenizer

HERE = Path(__file__).resolve().parent
FIXTURES = HERE.parent / "fixtures"
TOKENIZER = FIXTURES / "tokenizers" / "tiny-llama"

# What we write around the text; the script's own phrases are found by their place in the source.
TASK = "Put this text into other words, and go on with it: "
OPENING = "{conv_id} is the number of this one. "


def words(lines=4000):
    return "".join(f"Line {number} of a text that nobody has to read. " for number in range(1, lines + 1))


def talks():
    """Conversations of 2, 4, 4 and 6 messages. The script never ends when one ends with the user."""
    def talk(number, turns):
        roles = ("user", "assistant")
        said = [f"{'Why' if at % 2 == 0 else 'Because'} {number}.{at} " + "and so on " * ((at * 3 + number) % 5 + 1) for at in range(turns)]
        return {"id": f"talk {number}", "messages": [{"role": roles[at % 2], "content": text} for at, text in enumerate(said)]}
    return [talk(number, turns) for number, turns in enumerate([2, 4, 4, 6])]


def generators():
    base = {
        "filetype": "generate_conversations", "num_conversations": 6, "text_files": ["{TEXT}"], "print_stats": True,
        "prompt_input": {
            "num_turns": {"distribution": "uniform", "min": 3, "max": 8},
            "common_prefix_num_tokens": {"distribution": "constant", "value": 50},
            "prefix_num_tokens": {"distribution": "lognormal", "average": 100, "max": 500},
            "num_tokens": {"distribution": "uniform", "min": 60, "max": 90},
        },
        "prompt_output": {"num_tokens": {"distribution": "uniform", "min": 8, "max": 12}},
    }
    def variant(**fields):
        new = json.loads(json.dumps(base))
        for path, value in fields.items():
            place = new["prompt_output"] if path == "output" else new["prompt_input"]
            place["num_tokens" if path == "output" else path] = value
        return new
    yield "base", base
    yield "zipf and poisson", variant(
        num_turns={"distribution": "zipf", "alpha": 1.6, "max": 10}, num_tokens={"distribution": "poisson", "alpha": 70},
        output={"distribution": "poisson", "alpha": 4, "max": 6})
    yield "lognormal", variant(
        num_turns={"distribution": "lognormal", "mean": 1.2, "sigma": 0.4, "max": 12},
        num_tokens={"distribution": "lognormal", "average": 80, "median_ratio": 0.7, "max": 200},
        output={"distribution": "lognormal", "average": 9})
    no_prefix = variant(prefix_num_tokens={"distribution": "constant", "value": 0}, num_tokens={"distribution": "constant", "value": 5})
    del no_prefix["prompt_input"]["common_prefix_num_tokens"]
    yield "no prefix, short", no_prefix


RUNS = {
    "one client": [],
    "two held": ["-k", "2"],
    "three held at random": ["--max-active-conversations", "3", "--conversation-sampling", "random", "--seed", "5"],
    "max turns": ["--max-turns", "3"],
    "limits": ["--limit-max-tokens", "9", "--limit-min-tokens", "4"],
    "no limits": ["--limit-max-tokens", "-1", "--limit-min-tokens", "-1"],
    "warm-up step": ["--warmup-step"],
    "conversation id": ["--send-conversation-id", "--header", "X-One: 1", "--header", "X-Two=2", "--api-key", "hidden"],
    "no stream": ["--no-stream"],
    "max requests": ["-n", "4"],
    "warm-up percentages": ["--warmup-percentages", "0%,25%,50%"],
    "verbose": ["-v"],
    "generated": ["-i", "{GENERATOR}", "--seed", "3"],
}


def answer(body):
    """The reply to a body, in pieces: depends on nothing but how many messages there are."""
    count = len(body["messages"])
    return [f"answer {count}"] + [" more"] * (count + 2)


class Server(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.path == "/version":
            return self.reply(json.dumps({"version": "0"}), "application/json")
        self.reply(json.dumps({"data": [{"id": "m", "max_model_len": 100}]}), "application/json")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kept = ("authorization", "x-session-id", "x-one", "x-two")
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() in kept}
        self.server.calls.append({"path": self.path, "headers": headers, "body": body})
        pieces = answer(body)
        if not body.get("stream"):
            message = {"role": "assistant", "content": "".join(pieces)}
            return self.reply(json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}), "application/json")
        chunks = [{"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]} for piece in pieces]
        chunks[-1]["choices"][0]["finish_reason"] = "stop"
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        self.reply(text, "text/event-stream")

    def reply(self, text, kind):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())


# Tables are not to be broken into lines.
WIDE = """import pandas as _wide
_wide.set_option("display.width", 1000)
_wide.set_option("display.max_columns", 50)
"""


def plain(text):
    """Without colours."""
    out, rest = [], text
    while "\x1b[" in rest:
        before, _, rest = rest.partition("\x1b[")
        out.append(before)
        rest = rest.partition("m")[2]
    return "".join([*out, rest])


class Recorder:
    def __init__(self, scripts):
        self.folder = Path(tempfile.mkdtemp())
        self.scripts = self.folder / "scripts"
        shutil.copytree(Path(scripts) / "multi_turn", self.scripts)
        source = (self.scripts / "bench_dataset.py").read_text()
        source, tasks = re.subn(r'base_prompt_text = "[^"]*"', f"base_prompt_text = {TASK!r}", source)
        source, openings = re.subn(r'content = f"[{]conv_id[}] [^"]*"', f'content = f"{OPENING}"', source)
        assert (tasks, openings) == (1, 1)
        (self.scripts / "bench_dataset.py").write_text(WIDE + source)
        # Of vllm the script takes a function that hides secrets in a log line; without it it starts in seconds.
        package = self.scripts / "vllm" / "benchmarks" / "lib"
        package.mkdir(parents=True)
        (package / "utils.py").write_text("def redact_sensitive_namespace(*_):\n    return ''\n")
        converter = self.scripts / "convert_sharegpt_to_openai.py"
        converter.write_text(WIDE + converter.read_text())
        (self.folder / "words.txt").write_text(words())
        (self.folder / "talks.json").write_text(json.dumps(talks()))

    def script(self, name, argv):
        """What a script prints; run in a fork of this process, which has imported what is slow to import."""
        printed = self.folder / "printed.txt"
        child = os.fork()
        if child == 0:
            try:
                out = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(out, 1)
                os.chdir(self.folder)
                sys.path.insert(0, str(self.scripts))
                sys.argv = [name, *argv]
                runpy.run_path(str(self.scripts / name), run_name="__main__")
                sys.stdout.flush()
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        if status:
            sys.exit(f"{name} {argv} failed")
        # Names of this machine's folders tell nothing.
        return plain(printed.read_text()).replace(str(TOKENIZER), "TOKENIZER").replace(f"{self.folder}/", "")

    def config(self, config):
        path = self.folder / "generator.json"
        path.write_text(json.dumps(config).replace("{TEXT}", "words.txt"))
        return path

    def run(self, argv):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
        server.calls = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stats, out = self.folder / "stats.json", self.folder / "out.json"
        for file in (stats, out):
            file.unlink(missing_ok=True)
        words = argv if "-i" in argv else ["-i", str(self.folder / "talks.json"), *argv]
        printed = self.script("benchmark_serving_multi_turn.py", [
            "-m", str(TOKENIZER), "--served-model-name", "m", "-u", f"http://127.0.0.1:{server.server_port}",
            "--stats-json-output", str(stats), "-o", str(out), *words])
        server.shutdown()
        return {"calls": server.calls, "printed": printed, "stats": json.loads(stats.read_text()), "output": json.loads(out.read_text())}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scripts", required=True)
    parser.add_argument("--out", default=str(HERE / "vllm_multi_turn.json"))
    args = parser.parse_args()
    recorder = Recorder(args.scripts)
    result = {"talks": talks(), "shared": shared(), "runs": [], "generated": [], "converted": []}
    for name, flags in RUNS.items():
        generator = recorder.config(dict(generators())["base"])
        argv = [str(generator) if word == "{GENERATOR}" else word for word in flags]
        run = recorder.run(argv)
        if name == "generated":
            # Whole prompts are in `generated` as hashes.
            for call in run["calls"]:
                call["body"]["messages"] = [sha(message["content"]) for message in call["body"]["messages"]]
            run["output"] = []
        times = ("ttft_ms", "tpot_ms", "latency_ms", "start_time_ms")
        run["stats"] = [{key: None if key in times else value for key, value in row.items()} for row in run["stats"]]
        result["runs"].append({"name": name, "flags": flags, **run})
        print("run", name, len(run["calls"]), file=sys.stderr)
    for name, config in generators():
        for seed in (0, 7):
            path = recorder.config(config)
            code = recorder.generate(path, seed)
            result["generated"].append({"name": name, "seed": seed, "config": config, **code})
            print("generated", name, seed, file=sys.stderr)
    for name, flags in CONVERSIONS.items():
        result["converted"].append(recorder.convert(name, flags))
        print("converted", name, file=sys.stderr)
    versions = {"python": sys.version.split()[0], "vllm": "0.32.0"}
    result["made_with"] = versions | {it.__name__: it.__version__ for it in (aiohttp, numpy, pandas, transformers)}
    Path(args.out).write_text(json.dumps(result, indent=1, ensure_ascii=True) + "\n")


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()[:16]


CONVERSIONS = {
    "all": [],
    "shortest": ["--min-turns", "4", "--seed", "3"],
    "cut": ["--max-turns", "3"],
    "contents": ["--min-content-len", "7", "--max-content-len", "60"],
    "sampled": ["--max-items", "3", "--seed", "9"],
}


def shared():
    """Parts of conversations in the form of ShareGPT, every text with a character that is not ASCII, as the script keeps no other."""
    def part(name, first, turns, user="human", assistant="gpt"):
        said = [f"é {name} {first + at} " + "words " * ((first * 7 + at * 5) % 11) for at in range(turns)]
        return {"id": name, "conversations": [{"from": (user, assistant)[(first + at) % 2], "value": text} for at, text in enumerate(said)]}
    rows = [part(f"c{number}_0", 0, 2 + number % 4) for number in range(8)]
    rows += [part("c1_1", 3, 3), part("c2_1", 3, 2, "user", "chatgpt"), part("d_0", 1, 4), part("e_0", 0, 0)]
    rows.append({"id": "f_0", "conversations": [{"from": "human", "value": "é"}, {"from": "system", "value": "é"}]})
    return rows


def generate(self, path, seed):
    script = r"""
import json, random, sys, hashlib
import numpy as np
from bench_dataset import generate_conversations, parse_input_json_file
from transformers import AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
random.seed(int(sys.argv[3])); np.random.seed(int(sys.argv[3]))
made = generate_conversations(parse_input_json_file(json.load(open(sys.argv[2]))), tokenizer)
count = lambda text: len(tokenizer(text, add_special_tokens=False).input_ids)
rows = [{"id": key, "tokens": [count(m["content"]) for m in messages],
         "sha": [hashlib.sha256(m["content"].encode()).hexdigest()[:16] for m in messages]} for key, messages in made.items()]
print("ROWS " + json.dumps(rows))
"""
    helper = self.scripts / "_generate.py"
    helper.write_text(script)
    printed = self.script("_generate.py", [str(TOKENIZER), str(path), str(seed)])
    table, _, rows = printed.partition("ROWS ")
    return {"printed": table, "conversations": json.loads(rows)}


def convert(self, name, flags):
    source, target = self.folder / "shared.json", self.folder / "converted.json"
    source.write_text(json.dumps(shared()))
    printed = self.script("convert_sharegpt_to_openai.py", [str(source), str(target), *flags])
    return {"name": name, "flags": flags, "printed": printed, "output": json.loads(target.read_text())}


Recorder.generate, Recorder.convert = generate, convert

if __name__ == "__main__":
    main()
