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

python="$(python_with build/onnx_python onnx onnxruntime numpy)" || without "$python"
[[ -x "build/$preset/tests/onnx_runner" ]] || without "build/$preset has no onnx_runner"
exec "$python" tests/outside/onnx_random.py --program "build/$preset/tests/onnx_runner" "$@"
