#!/usr/bin/env bash
# Random grids with feedback of any width, run and trained in passes and tick by tick, compared with
# a simulator in float64 (grid_check.py). The last line counts. Packages come from PyPI into build/;
# without them it is skipped.
#   tests/outside/grid_check.sh [PRESET] [--whole] [arguments of grid_check.py]
#   --whole: 300 grids; otherwise 10
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
count=10
if [[ "${1:-}" == --whole ]]; then count=300; shift; fi
python="$(checks_python numpy safetensors)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
exec "$python" tests/outside/grid_check.py "build/$preset/cli/loom" --count "$count" "$@"
