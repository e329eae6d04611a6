#!/usr/bin/env bash
# Compares lm-eval against `loom serve` with transformers (lm_eval_check.py). It needs PyTorch:
# LOOM_ABSORB_PYTHON names a Python that has lm-eval, torch and transformers; otherwise it is
# skipped. The last line counts.
#   tests/outside/lm_eval_check.sh [PRESET] [OPTION ...]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
python="${LOOM_ABSORB_PYTHON:-python3}"
status=0
"$python" tests/outside/lm_eval_check.py "build/$preset/cli/loom" "$@" || status=$?
if (( status == 77 )); then
  say "skipped: LOOM_ABSORB_PYTHON names a Python with lm-eval[api,hf]"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
exit "$status"
