"""Cases of `make_golden.py` for the steady state: what the tool's own calculation makes of made-up replies.

Every time is a multiple of 1/8 s, which neither floats nor records of 64 ns round."""

import contextlib
import io
import random
from dataclasses import asdict, dataclass

TICK = 8


@dataclass
class Output:
    """One reply, with the fields that the calculation reads."""

    success: bool
    start_time: float
    latency: float
    ttft: float
    itl: list
    output_len: int
    generated_text: str


@dataclass
class Input:
    prompt_len: int


class Letters:
    """One token per letter."""

    def encode(self, text, add_special_tokens=False):
        return list(text)


def reply(start, times, output_len=None, success=True, text=None):
    """A reply that began at `start` and whose tokens came at `times`, all in ticks."""
    times = list(times)
    return Output(
        success=success, start_time=start / TICK, latency=(times[-1] - start) / TICK, ttft=(times[0] - start) / TICK,
        itl=[(after - before) / TICK for before, after in zip(times, times[1:])],
        output_len=len(times) if output_len is None else output_len, generated_text="x" * len(times) if text is None else text,
    )


def drawn(seed):
    rng = random.Random(seed)
    replies = []
    for _ in range(rng.choice((1, 2, 5, 20, 60))):
        start = rng.randrange(0, 200)
        at, times = start + rng.randrange(1, 20), []
        for _ in range(rng.randrange(1, 25)):
            times.append(at)
            at += rng.randrange(1, 9)
        tokens = rng.choice((None, None, len(times) * 2, len(times) + 7))
        replies.append(reply(start, times, tokens, rng.random() > 0.15, "x" * rng.randrange(0, 40)))
    return replies


def steady_cases():
    """(name, replies, ratio)"""
    ramp = [reply(8 * at, range(8 * at + 1, 8 * (10 - at))) for at in range(5)]
    for ratio in (1.0, 0.8, 0.5, 0.2, 0.01):
        yield f"pyramid/{ratio}", ramp, ratio
    turns = [reply(4 * at, [4 * at + 2, 4 * at + 4]) for at in range(6)]
    yield "one-after-the-other", turns, 1.0
    yield "equal-spans", [turns[0], turns[2], turns[4]], 1.0
    yield "failures-left-out", [*turns, reply(0, [16, 32], success=False)], 0.9
    yield "instants-left-out", [*turns, reply(2, [2])], 1.0
    # 0.55 · 100 is a little more than 55 to a computer.
    crowd = [reply(0, [100 + at]) for at in range(100)]
    yield "rounded-up", crowd, 0.55
    yield "bursts", [reply(0, [8, 16, 17, 24, 25], 40), reply(0, [24], 9)], 1.0
    for seed in range(24):
        yield f"drawn-{seed}", drawn(seed), (1.0, 0.9, 0.75, 0.5, 0.3)[seed % 5]


def make_steady(reference):
    from sglang.benchmark.steady_state import calculate_steady_state_metrics
    from sglang.benchmark.steady_state_serving import _print_metrics

    cases = []
    for name, replies, ratio in steady_cases():
        inputs = [Input(17 * place % 101 + 1) for place in range(len(replies))]
        case = {"name": name, "ratio": ratio, "prompt_lens": [row.prompt_len for row in inputs], "replies": [asdict(row) for row in replies]}
        try:
            metrics = calculate_steady_state_metrics(replies, Letters(), ratio, inputs)
            case["metrics"] = asdict(metrics)
            with contextlib.redirect_stdout(io.StringIO()) as console:
                _print_metrics(metrics)
            case["console"] = console.getvalue()
        except ValueError as error:
            case["error"] = type(error).__name__
        cases.append(case)
    return {"cases": cases}, 4


MAKERS = {"steady": make_steady}
