#!/usr/bin/env bash
# Random ONNX graphs in Loom and in ONNX Runtime (onnx_random.py), a fixed choice of some hundred.
# The last line counts them. Packages come from PyPI into build/; without them it is skipped.
#   tests/outside/onnx_check.sh [PRESET] [arguments of onnx_random.py]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
# without WHY
without() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

python="$(checks_python onnx onnxruntime numpy)" || without "$python"
[[ -x "build/$preset/tests/onnx_runner" ]] || without "build/$preset has no onnx_runner"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
status=0
"$python" tests/outside/onnx_random.py --program "build/$preset/tests/onnx_runner" "$@" | tee "$log" || status=1
# Models of several inputs and outputs, and layers that are written, through the Python package.
library="build/$preset/libloom.so"
if (( $# == 0 )) && [[ -f "$library" ]]; then
  for script in onnx_ports onnx_states onnx_batches onnx_layers; do
    LOOM_LIBRARY="$PWD/$library" PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 "$python" \
      "tests/outside/$script.py" | tee -a "$log" || status=1
  done
fi
# The standard's own tests, unchanged.
if (( $# == 0 )) && [[ -x "build/$preset/tests/evaluate_runner" ]]; then
  "$python" tests/outside/onnx_standard.py --program "build/$preset/tests/evaluate_runner" | tee -a "$log" || status=1
  # Output of its optimizer and its quantizers: single operators, and whole models.
  for script in onnx_microsoft onnx_optimized; do
    PYTHONDONTWRITEBYTECODE=1 "$python" "tests/outside/$script.py" \
      --program "build/$preset/tests/evaluate_runner" | tee -a "$log" || status=1
  done
fi
awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
  END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$log"
exit "$status"
