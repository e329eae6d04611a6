#!/usr/bin/env bash
# Encoders of transformers in Loom and in ONNX Runtime (onnx_encoders.py). Needs a Python with torch, transformers, onnx,
# onnxscript and onnxruntime (LOOM_ABSORB_PYTHON). The last line counts.
#   tests/outside/onnx_encoders_check.sh [PRESET] [arguments of onnx_encoders.py]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
status=0
"${LOOM_ABSORB_PYTHON:-python3}" tests/outside/onnx_encoders.py --loom "build/$preset/cli/loom" "$@" || status=$?
(( status == 77 )) || exit "$status"
say "skipped: LOOM_ABSORB_PYTHON names no Python with torch, transformers, onnx, onnxscript and onnxruntime"
printf '0 passed, 0 failed, 1 skipped\n'
