#!/usr/bin/env python3
"""Writes down which flags the Python benchmark tools have: names, types, defaults, choices; no help texts.

Run it with the Python that has the tools installed:

    VENV/bin/python tests/golden/flags.py sglang > tests/fixtures/upstream/sglang-VERSION.json
    VENV/bin/python tests/golden/flags.py vllm > tests/fixtures/upstream/vllm-VERSION.json

Each tool is started as its users start it, and stopped at the moment at which it would read its command
line: the parser it has made by then is what is written down.
"""

import argparse
import importlib.metadata
import json
import re
import runpy
import sys
from enum import Enum


class Captured(BaseException):
    """Ends a tool when its parser is complete."""


def parser_of(start, argv):
    """The parser that `start` reads `argv` with."""

    def stop(self, *_args, **_kwargs):
        raise Captured(self)

    saved = {name: getattr(argparse.ArgumentParser, name) for name in ("parse_args", "parse_known_args")}
    classes = [argparse.ArgumentParser, *subclasses(argparse.ArgumentParser)]
    overridden = [(c, n, c.__dict__[n]) for c in classes for n in saved if n in c.__dict__]
    saved_argv = sys.argv
    for owner, name, _ in overridden:
        setattr(owner, name, stop)
    sys.argv = argv
    try:
        start()
    except Captured as captured:
        return captured.args[0]
    finally:
        sys.argv = saved_argv
        for owner, name, function in overridden:
            setattr(owner, name, function)
    raise SystemExit(f"{argv[0]} read no command line")


def subclasses(owner):
    for child in owner.__subclasses__():
        yield child
        yield from subclasses(child)


def module(name):
    return parser_of(lambda: runpy.run_module(name, run_name="__main__"), [name])


def plain(value):
    """A default or a choice as JSON."""
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return str(value)
    if value is argparse.SUPPRESS:
        return None
    if isinstance(value, str) and re.fullmatch("bench-[0-9a-f]{8}-", value):
        return "<bench-, 8 random digits and ->"
    if isinstance(value, str) and len(value) > 60 and " " in value:
        return f"<a text of {len(value)} characters>"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple, set, frozenset)):
        values = [plain(item) for item in value]
        return sorted(values, key=str) if isinstance(value, (set, frozenset)) else values
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return type(value).__name__


def kind(action):
    if isinstance(action, argparse.BooleanOptionalAction):
        return "pair"
    if action.nargs == 0:
        return "switch"
    converter = action.type
    return "str" if converter is None else getattr(converter, "__name__", type(converter).__name__)


def describe(action):
    long = [name for name in action.option_strings if name.startswith("--")]
    found = {"flag": long[0]}
    aliases = [name for name in action.option_strings if name != long[0]]
    if aliases:
        found["aliases"] = aliases
    found["type"] = kind(action)
    if action.nargs not in (None, 0):
        found["nargs"] = action.nargs
    if action.required:
        found["required"] = True
    if not isinstance(action, argparse._HelpAction):
        found["default"] = plain(action.default)
    if action.choices is not None:
        found["choices"] = sorted((plain(choice) for choice in action.choices), key=str)
    return found


def flags(parser, without=()):
    described = [
        describe(action)
        for action in parser._actions
        if any(name.startswith("--") for name in action.option_strings)
        and not isinstance(action, (argparse._HelpAction, argparse._VersionAction))
    ]
    return sorted((flag for flag in described if flag["flag"] not in without), key=lambda flag: flag["flag"])


def sglang():
    tools = {
        "bench_serving": {"flags": flags(module("sglang.benchmark.serving"))},
        "steady_state_serving": {"flags": flags(module("sglang.benchmark.steady_state_serving"))},
        "profiler": {"flags": flags(module("sglang.profiler"))},
        "send_one": {"flags": flags(module("sglang.test.send_one"))},
    }
    from sglang.srt.server_args import ServerArgs

    server = argparse.ArgumentParser()
    ServerArgs.add_cli_args(server)
    served = flags(server)
    names = {flag["flag"] for flag in served}
    tools["bench_one_batch_server"] = {
        "flags": flags(module("sglang.benchmark.one_batch_server"), names),
        "server_flags": served,
    }
    return tools


def walk(parser, path):
    """The commands below a parser, by path."""
    own = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for action in own:
        for name, child in action.choices.items():
            yield from walk(child, [*path, name])
    if not own:
        yield " ".join(path), parser


def vllm():
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.entrypoints.cli.main import main
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    engine = FlexibleArgumentParser()
    AsyncEngineArgs.add_cli_args(engine)
    of_the_engine = {flag["flag"]: flag for flag in flags(engine)}
    found = {}
    for path, parser in walk(parser_of(main, ["vllm", "bench"]), ["vllm"]):
        if not path.startswith("vllm bench "):
            continue
        served = [flag for flag in flags(parser) if flag == of_the_engine.get(flag["flag"])]
        # A command without an engine shares a few names with it, by chance.
        if len(served) < len(of_the_engine) // 2:
            served = []
        found[path] = {"flags": flags(parser, {flag["flag"] for flag in served})}
        if served:
            found[path]["server_flags"] = served
    return found


def main():
    package = sys.argv[1]
    # Tools print while they are imported.
    out, sys.stdout = sys.stdout, sys.stderr
    tools = {"sglang": sglang, "vllm": vllm}[package]()
    sys.stdout = out
    version = importlib.metadata.version(package).partition("+")[0]
    lines = [f' "package": {json.dumps(package)},', f' "version": {json.dumps(version)},', ' "tools": {']
    for at, (name, tool) in enumerate(tools.items()):
        lines.append(f"  {json.dumps(name)}: {{")
        for position, (key, listed) in enumerate(tool.items()):
            rows = ",\n".join("    " + json.dumps(flag) for flag in listed)
            end = "," if position + 1 < len(tool) else ""
            lines.append(f"   {json.dumps(key)}: [\n{rows}\n   ]{end}")
        lines.append("  }" + ("," if at + 1 < len(tools) else ""))
    print("{\n" + "\n".join(lines) + "\n }\n}")


main()
