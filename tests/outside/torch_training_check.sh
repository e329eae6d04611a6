#!/usr/bin/env bash
# Absorbed modules trained and compared with PyTorch (torch_training.py). Without PyTorch: compared
# with its recorded results for 30 random modules, tests/golden/torch_training.npz. The last line
# counts.
#   tests/outside/torch_training_check.sh [PRESET] [--whole] [OPTION ...]
#   --whole: 120 random modules and the architectures, with the PyTorch of LOOM_ABSORB_PYTHON;
# skipped without one
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
library="$LOOM_ROOT/build/$preset/libloom.so"
[[ -f "$library" ]] || die "$library is not there; build it with LOOM_INSTALL=ON"
export PYTHONPATH="bindings/python" LOOM_LIBRARY="$library"
if [[ "${1:-}" == --whole ]]; then
  shift
  python="${LOOM_ABSORB_PYTHON:-python3}"
  "$python" -c 'import torch, numpy' 2> /dev/null || {
    say "skipped: $python has no PyTorch; LOOM_ABSORB_PYTHON names one that has"
    printf '0 passed, 0 failed, 1 skipped\n'
    exit 0
  }
  exec "$python" tests/outside/torch_training.py --architectures "$@"
fi
python="$(checks_python numpy)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
exec "$python" tests/outside/torch_training.py --replay tests/golden/torch_training.npz "$@"
