#!/bin/bash
# run_llamacpp.sh VENV TINY_LLAMA_DIR [PORT]  - the real llama.cpp HTTP server (xllamacpp wheel), 130 MB disk, ~45 MB RAM, up in <1 s.
# TINY_LLAMA_DIR holds tiny-llama as make_tiny_model.py writes it; a *.gguf file in its place is served as it is.
set -euo pipefail
V=$1; M=$2; P=${3:-8200}; HERE=$(dirname "$(readlink -f "$0")")
# The marker is written last, so that an installation that broke off is done again.
[ -e "$V/.ok" ] || { python3 -m venv "$V"; "$V/bin/pip" install -q --only-binary :all: xllamacpp==2026.10.11549 gguf numpy; touch "$V/.ok"; }
case "$M" in *.gguf) G=$M;; *) G=$M/tiny.gguf; [ -e "$G" ] || "$V/bin/python" "$HERE/make_gguf.py" "$M" "$G";; esac
exec "$V/bin/python" "$HERE/serve_llamacpp.py" "$G" "$P"
