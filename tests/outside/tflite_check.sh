#!/usr/bin/env bash
# Random TFLite models in Loom and in the TFLite interpreter (tflite_check.py), a fixed choice of some hundred.
# The last line counts them. The interpreter comes from PyPI into build/; without it this is skipped.
#   tests/outside/tflite_check.sh [PRESET] [arguments of tflite_check.py]
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

python="$(checks_python ai-edge-litert:ai_edge_litert flatbuffers numpy)" || without "$python"
library="build/$preset/libloom.so"
[[ -f "$library" && -x "build/$preset/cli/loom" ]] || without "build/$preset has no library or no program"
LOOM_LIBRARY="$PWD/$library" PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 "$python" \
  tests/outside/tflite_check.py --loom "build/$preset/cli/loom" "$@"
