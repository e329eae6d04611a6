#!/usr/bin/env bash
# ONNX files of packages of PyPI and npm: in the evaluator, compared with ONNX Runtime, and as
# networks that train, compared with PyTorch. Needs a Python with torch, onnx and onnxruntime
# (LOOM_ABSORB_PYTHON). The last line counts the second.
#   tests/outside/onnx_files_check.sh [PRESET] [--minutes N]
#   --minutes: no file begins after these; the next run continues
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
python="${LOOM_ABSORB_PYTHON:-python3}"
"$python" -c 'import torch, onnx, onnxruntime, pip' 2> /dev/null || {
  say "skipped: $python has no torch, onnx and onnxruntime; LOOM_ABSORB_PYTHON names one that has"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
export PYTHONPATH="bindings/python" LOOM_LIBRARY="$LOOM_ROOT/build/$preset/libloom.so"
[[ -f "$LOOM_LIBRARY" ]] || die "$LOOM_LIBRARY is not there; build it with LOOM_INSTALL=ON"
status=0
"$python" bench/onnx_packages.py --program "build/$preset/tests/evaluate_runner" --families --inputs 3 \
  --seconds 0.05 || status=1
"$python" bench/onnx_torch_files.py --families --rows build/onnx_packages/rows.jsonl "$@" || status=1
exit "$status"
