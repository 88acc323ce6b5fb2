#!/usr/bin/env python3
"""Records what `vllm bench throughput` and `latency` write for PyTorch's benchmark database, into vllm_records.json.

    VENV/bin/python tests/golden/vllm_records.py

Their own functions are called with results made up here, since the commands would need an engine."""

import argparse
import importlib
import json
import os
import tempfile
from importlib import metadata
from pathlib import Path

RESULTS = {
    "throughput": {"elapsed_time": 2.5, "num_requests": 6, "total_num_tokens": 72, "requests_per_second": 2.4, "tokens_per_second": 28.8},
    "latency": {"avg_latency": 0.5, "latencies": [0.25, 0.75], "percentiles": {str(at): 0.5 for at in (10, 25, 50, 75, 90, 99)}},
}


def main():
    os.environ["SAVE_TO_PYTORCH_BENCHMARK_FORMAT"] = "1"
    cases = []
    for command, result in RESULTS.items():
        module = importlib.import_module(f"vllm.benchmarks.{command}")
        with tempfile.TemporaryDirectory() as folder:
            arguments = argparse.Namespace(model="tiny", output_json=f"{folder}/of.this.json")
            module.save_to_pytorch_benchmark_format(arguments, result)
            (file,) = Path(folder).iterdir()
            records = json.loads(file.read_text())
        for record in records:
            record["benchmark"]["extra_info"]["args"] = {}
        cases.append({"name": command, "result": result, "file": file.name, "records": records})
    body = ",\n".join(json.dumps(case) for case in cases)
    versions = json.dumps({"vllm": metadata.version("vllm")})
    (Path(__file__).parent / "vllm_records.json").write_text(f'{{"made_with": {versions}, "cases": [\n{body}\n]}}\n')


if __name__ == "__main__":
    main()
