#!/usr/bin/env bash
# Networks exported to PyTorch (torch_back.py). PyTorch is large, so the check needs a Python with
# it: LOOM_ABSORB_PYTHON or python3. Otherwise it is skipped. The last line counts.
#   tests/outside/torch_back_check.sh [PRESET] [--whole] [OPTION ...]
#   without --whole: 20 random modules and 200 random networks
#   --whole: 120 random modules, the architectures of absorb, and 1,000 random networks
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
library="$LOOM_ROOT/build/$preset/libloom.so"
[[ -f "$library" ]] || die "$library is not there; build it with LOOM_INSTALL=ON"
python="${LOOM_ABSORB_PYTHON:-python3}"
"$python" -c 'import torch, numpy' 2> /dev/null || {
  say "skipped: $python has no PyTorch; LOOM_ABSORB_PYTHON names one that has"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
how=(--modules 20 --networks 200)
if [[ "${1:-}" == --whole ]]; then
  how=(--architectures)
  shift
fi
PYTHONPATH="bindings/python" LOOM_LIBRARY="$library" exec "$python" tests/outside/torch_back.py "${how[@]}" "$@"
