#!/usr/bin/env bash
# Compares loom train of a table alone with a pipeline of scikit-learn (tables_check.py). The last line counts.
# Packages come from PyPI into build/; without them it is skipped.
#   tests/outside/tables_check.sh [PRESET]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
python="$(checks_python numpy scikit-learn:sklearn pandas)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
exec "$python" -W ignore tests/outside/tables_check.py "build/$preset/cli/loom"
