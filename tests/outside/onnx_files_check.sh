#!/usr/bin/env bash
# ONNX files that packages of PyPI and npm have: in the evaluator beside ONNX Runtime, and as networks that train beside
# PyTorch. Needs a Python with torch, onnx and onnxruntime (LOOM_ABSORB_PYTHON). The last line counts.
#   tests/outside/onnx_files_check.sh [PRESET] run
#   tests/outside/onnx_files_check.sh [PRESET] train [--minutes N]
#   --minutes: no file begins after these; the next run continues
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}" what="${2:-}"
[[ "$what" == run || "$what" == train ]] || die "usage: tests/outside/onnx_files_check.sh [PRESET] run|train [--minutes N]"
shift 2
python="${LOOM_ABSORB_PYTHON:-python3}"
"$python" -c 'import torch, onnx, onnxruntime, pip' 2> /dev/null || {
  say "skipped: $python has no torch, onnx and onnxruntime; LOOM_ABSORB_PYTHON names one that has"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
if [[ "$what" == run ]]; then
  exec "$python" bench/onnx_packages.py --program "build/$preset/tests/evaluate_runner" --families --inputs 3 --seconds 0.05
fi
export PYTHONPATH="bindings/python" LOOM_LIBRARY="$LOOM_ROOT/build/$preset/libloom.so"
[[ -f "$LOOM_LIBRARY" ]] || die "$LOOM_LIBRARY is not there; build it with LOOM_INSTALL=ON"
exec "$python" bench/onnx_torch_files.py --families --rows build/onnx_packages/rows.jsonl "$@"
