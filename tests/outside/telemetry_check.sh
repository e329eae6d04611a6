#!/usr/bin/env bash
# The output of `loom train --tensorboard`, read by TensorBoard itself (telemetry_check.py). The
# last line counts. Packages come from PyPI into build/; without them it is skipped.
#   tests/outside/telemetry_check.sh [PRESET]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

python="$(checks_python tensorboard)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
exec "$python" tests/outside/telemetry_check.py "build/${1:-dev}/cli/loom"
