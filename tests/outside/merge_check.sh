#!/usr/bin/env bash
# Compares loom merge with NumPy (merge_check.py). The last line counts. Packages come from PyPI
# into build/; without them it is skipped. Further words go to merge_check.py.
#   tests/outside/merge_check.sh [PRESET] [--transformers-python PYTHON]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset=dev
if (( $# > 0 )) && [[ "$1" != --* ]]; then preset="$1"; shift; fi
python="$(checks_python numpy safetensors)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
exec "$python" tests/outside/merge_check.py "build/$preset/cli/loom" "$@"
