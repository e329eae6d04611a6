#!/usr/bin/env bash
# Compares random decoders with experts with transformers (experts_check.py).
# PyTorch is large, so the check needs a Python with it and transformers: LOOM_EMBED_PYTHON or
# python3. Otherwise it is skipped. The last line counts.
#   tests/outside/experts_check.sh [PRESET] [--whole]
#   without --whole: one case of each class; with it: ten
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
python="${LOOM_EMBED_PYTHON:-python3}"
"$python" -c 'import torch, transformers' 2> /dev/null || {
  say "skipped: $python has no torch and transformers; LOOM_EMBED_PYTHON names one that has"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
how=(--count 1)
if [[ "${2:-}" == --whole ]]; then how=(); fi
exec "$python" -W ignore tests/outside/experts_check.py --runner "build/$preset/tests/model_runner" "${how[@]}"
