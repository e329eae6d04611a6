#!/usr/bin/env bash
# Compares loom embed and rerank with transformers (embed_check.py). The last line counts. Packages
# come from PyPI into build/. torch is large, so the check uses an installed one and is otherwise
# skipped.
#   tests/outside/embed_check.sh [PRESET]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
python="${LOOM_EMBED_PYTHON:-python3}"
"$python" -c 'import torch, transformers, tokenizers' 2> /dev/null || {
  say "skipped: $python has no torch and transformers; LOOM_EMBED_PYTHON names one that has"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
exec "$python" -W ignore tests/outside/embed_check.py "build/$preset/cli/loom"
