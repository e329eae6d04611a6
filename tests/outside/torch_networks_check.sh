#!/usr/bin/env bash
# Networks of PyTorch, opened, trained and compared with it (torch_networks.py). The last line
# counts. PyTorch is large, so the check needs a Python with it: LOOM_TORCH_PYTHON or python3.
# Otherwise it is skipped.
#   tests/outside/torch_networks_check.sh [PRESET] [--onnx[=WAY]] [WORD ...]
#   WAY: plain, optimized or script (torch_networks.py). With words: networks whose names have one.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
python="${LOOM_TORCH_PYTHON:-python3}"
"$python" -c 'import torch, numpy' 2> /dev/null || {
  say "skipped: $python has no PyTorch; LOOM_TORCH_PYTHON names one that has"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
library="$LOOM_ROOT/build/$preset/libloom.so"
[[ -f "$library" || "${1:-}" == --onnx* ]] || die "$library is not there; build it with LOOM_INSTALL=ON"
PYTHONPATH="bindings/python" LOOM_LIBRARY="$library" exec "$python" tests/outside/torch_networks.py \
  "build/$preset/cli/loom" "$@"
