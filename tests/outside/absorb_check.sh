#!/usr/bin/env bash
# Models of scikit-learn, LightGBM, XGBoost, PyTorch, Keras and JAX, absorbed and proven
# (absorb_check.py). The last line counts. The first three come from PyPI into build/. The others
# are large, so the check uses those of LOOM_ABSORB_PYTHON.
#   tests/outside/absorb_check.sh [PRESET] [--quick] [PLANET ...] [WORD ...]    a WORD selects
# models by name
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
python="${LOOM_ABSORB_PYTHON:-}"
if [[ -z "$python" ]]; then
  python="$(checks_python numpy scikit-learn:sklearn lightgbm xgboost-cpu:xgboost)" ||
    python="$(checks_python numpy scikit-learn:sklearn)" || {
    say "skipped: $python"
    printf '0 passed, 0 failed, 1 skipped\n'
    exit 0
  }
fi
library="$LOOM_ROOT/build/$preset/libloom.so"
[[ -f "$library" ]] || die "$library is not there; build it with LOOM_INSTALL=ON"
PYTHONPATH="bindings/python" LOOM_LIBRARY="$library" exec "$python" tests/outside/absorb_check.py "$@"
