"""Cases of `make_golden.py` for the data sets that are tables: LongBench v2 and SPEED-Bench.

`python3 tables.py` writes their files, and `table_small.parquet`, to `tests/fixtures`; it needs pyarrow."""

import json
import random
from pathlib import Path

from structured import SEEDS, command

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"

# ---------------------------------------------------------------- fixtures

WORDS = "harbour winter 木曜日 größer signal (Fig. 2) ledger née <s> orbit \t margin\n\nchapter ☂ seventeen copper \"quote\" \\frac 1,024 ».".split(" ")


def text(seed, count):
    draw = random.Random(seed)
    return " ".join(draw.choice(WORDS) for _ in range(count))


def longbench_rows():
    rows = []
    for number in range(40):
        rows.append({
            "_id": f"id{number:02}", "domain": "Single-Document QA", "sub_domain": "Academic", "difficulty": "easy" if number % 3 else "hard",
            "length": "short", "question": f"What does part {number} say of {text(1000 + number, 3)}?",
            **{f"choice_{letter}": f"{letter.lower()}{number} {text(2000 + number + ord(letter), 2)}" for letter in "ABCD"},
            "answer": "ABCD"[number % 4], "context": text(number, 4 + number * number % 97),
        })
    rows[5]["context"] = ""
    rows[9]["choice_D"] = None
    rows[11]["question"] = " \r\n\x0b leading and trailing \u2028 "
    return rows


def write_longbench(folder):
    rows = longbench_rows()
    lines = [json.dumps(row, ensure_ascii=number % 2 == 0) for number, row in enumerate(rows)]
    # What only JSON can hold.
    rows[2]["choice_A"] = 1024
    rows[3]["choice_B"] = True
    rows[4]["choice_C"] = 2.5
    for number in (2, 3, 4):
        lines[number] = json.dumps(dict(reversed(rows[number].items())), ensure_ascii=False)
    lines[6] = "  " + lines[6] + "\t\r"
    lines.insert(8, "")
    lines.insert(20, " \t ")
    (folder / "longbench_small.jsonl").write_bytes("\n".join(lines).encode())


def write_parquet(folder):
    import datetime
    import decimal

    import pyarrow as pa
    import pyarrow.parquet as pq

    questions = longbench_rows()
    # What is made of a missing text depends on the version of pandas.
    questions[9]["choice_D"] = "none"
    table = pa.Table.from_pylist(questions)
    pq.write_table(table, folder / "longbench_small.parquet", row_group_size=16, compression="zstd")
    turn = pa.struct([("role", pa.string()), ("content", pa.string())])
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    schema = pa.schema([
        ("id", pa.int64()), ("small", pa.uint8()), ("score", pa.float64()), ("half", pa.float16()), ("yes", pa.bool_()), ("text", pa.string()),
        ("large", pa.large_string()), ("kind", pa.dictionary(pa.int32(), pa.string())), ("image", image), ("tags", pa.list_(pa.string())),
        ("turns", pa.list_(turn)), ("map", pa.map_(pa.string(), pa.int32())), ("when", pa.timestamp("us")), ("price", pa.decimal128(9, 2)),
        ("nothing", pa.null()),
    ])
    full = {
        "id": 1, "small": 255, "score": 0.5, "half": 0.25, "yes": True, "text": "né\n木", "large": "large", "kind": "a",
        "image": {"bytes": b"\x89PNG\x00\xff", "path": "one.png"}, "tags": ["x", None, ""],
        "turns": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": None}], "map": [("k", 7)],
        "when": datetime.datetime(2026, 11, 30, 12, 0, 0, 5), "price": decimal.Decimal("12.34"), "nothing": None,
    }
    rows = [
        full,
        dict.fromkeys(full),
        {**full, "id": -(2**63), "small": 0, "score": -1e300, "yes": False, "text": "", "kind": "b", "image": {"bytes": None, "path": None}, "tags": [], "turns": [], "map": []},
        {**full, "id": 2**63 - 1, "image": None, "tags": None, "turns": [None, {"role": None, "content": "alone"}]},
        {**full, "id": 5, "text": "x" * 3000, "image": {"bytes": bytes(range(256)) * 8, "path": None}, "tags": ["y"] * 40},
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / "table_small.parquet", row_group_size=2, compression="snappy")


def speed_bench_rows():
    categories = ["low_entropy", "mixed", "high_entropy"]
    rows = [
        {"question_id": f"q{number}", "category": categories[number % 3], "sub_category": "code", "turns": [text(3000 + number, 1 + number * 5 % 31)]}
        for number in range(25)
    ]
    rows[1]["turns"].append("a second turn")
    rows[2]["turns"] = []
    del rows[3]["turns"]
    rows[4]["turns"] = [""]
    rows[5]["category"] = "Mixed"
    del rows[6]["category"]
    rows[7]["turns"] = ["<s> special </s> [INST] tokens <|im_start|> "]
    rows[8]["turns"] = ["  blanks around \n"]
    rows[10]["turns"] = None
    return rows


def write_fixtures(folder):
    write_longbench(folder)
    write_parquet(folder)
    lines = [json.dumps(row, ensure_ascii=number % 2 == 0) for number, row in enumerate(speed_bench_rows())]
    (folder / "speed_bench_small.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


# ---------------------------------------------------------------- tables.json

TOKENIZERS = ("tiny-llama", "bytes", "bos", "drift")


def table_cases():
    """(name, tokenizer, data set, flags) without the seed."""
    for source in ("jsonl", "parquet"):
        base = ["--dataset-path", f"{{FIXTURES}}/longbench_small.{source}"]
        for tokenizer in TOKENIZERS:
            yield f"longbench/{source}/{tokenizer}/plain", tokenizer, "longbench_v2", base
        yield f"longbench/{source}/tiny-llama/output-len", "tiny-llama", "longbench_v2", [*base, "--sharegpt-output-len", "3"]
        yield f"longbench/{source}/tiny-llama/context-len", "tiny-llama", "longbench_v2", [*base, "--sharegpt-context-len", "260"]
        yield f"longbench/{source}/bytes/both", "bytes", "longbench_v2", [*base, "--sharegpt-context-len", "400", "--sharegpt-output-len", "100"]
        yield f"longbench/{source}/bos/all-rows", "bos", "longbench_v2", [*base, "--num-prompts", "1000"]
        yield f"longbench/{source}/bos/few-rows", "bos", "longbench_v2", [*base, "--num-prompts", "1000", "--sharegpt-context-len", "300"]
    base = ["--dataset-path", "{FIXTURES}/speed_bench_small.jsonl"]
    for tokenizer in TOKENIZERS:
        yield f"speed/{tokenizer}/plain", tokenizer, "speed-bench", base
    for category in ("low_entropy", "mixed", "high_entropy"):
        yield f"speed/tiny-llama/{category}", "tiny-llama", "speed-bench", [*base, "--speed-bench-category", category, "--num-prompts", "4"]
    yield "speed/tiny-llama/output-len", "tiny-llama", "speed-bench", [*base, "--speed-bench-output-len", "33"]
    yield "speed/tiny-llama/all-rows", "tiny-llama", "speed-bench", [*base, "--num-prompts", "22"]
    yield "speed/tiny-llama/one-more", "tiny-llama", "speed-bench", [*base, "--num-prompts", "23"]
    yield "speed/bos/repeats", "bos", "speed-bench", [*base, "--num-prompts", "60"]
    yield "speed/bytes/repeats-category", "bytes", "speed-bench", [*base, "--num-prompts", "30", "--speed-bench-category", "mixed"]


def make_tables(reference):
    cases = []
    for name, tokenizer, dataset, flags in table_cases():
        for seed in SEEDS:
            if seed != 42 and name.startswith("longbench/jsonl/") and not name.endswith("/plain"):
                continue
            argv = command(dataset, seed, flags)
            got = reference.dataset(argv, tokenizer)
            del got["printed"]
            cases.append({"name": f"{name}/seed-{seed}", "tokenizer": tokenizer, "argv": argv, **got})
    return {"cases": cases}, 4


MAKERS = {"tables": make_tables}

if __name__ == "__main__":
    write_fixtures(FIXTURES)
