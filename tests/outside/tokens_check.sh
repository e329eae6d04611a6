#!/usr/bin/env bash
# Token ids before and after a GGUF file (tokens_check.py). The package tokenizers is not installed
# for changes. The check needs a Python with it: LOOM_EMBED_PYTHON or python3. Otherwise it is
# skipped. The last line counts. LOOM_LLAMA is a folder with libllama; without it llama.cpp is left
# out.
#   tests/outside/tokens_check.sh [PRESET] [--whole]
#   without --whole: 6 tokenizers with 60 texts; with it: 200 with 300
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
python="${LOOM_EMBED_PYTHON:-python3}"
"$python" -c 'import tokenizers, numpy, safetensors' 2> /dev/null || {
  say "skipped: $python has no tokenizers, numpy and safetensors; LOOM_EMBED_PYTHON names one that has"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
how=(--count 6 --texts 60)
if [[ "${2:-}" == --whole ]]; then how=(--count 200 --texts 300); fi
exec "$python" tests/outside/tokens_check.py --runner "build/$preset/tests/model_runner" --llama "${LOOM_LLAMA:-}" "${how[@]}"
