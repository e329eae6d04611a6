#!/usr/bin/env bash
# Random networks with every field away from its default, written in each format and read by the other side: networks by
# Loom and ONNX Runtime (export_check.py), decoders as .gguf and folders (export_models.py). The last line counts.
# Packages come from PyPI into build/; without them it is skipped.
#   tests/outside/export_check.sh [PRESET] [--networks|--decoders]
#   without an option: 86 networks and 8 decoders. --networks: 2,000 networks. --decoders: 2,000 decoders, of which
#   llama.cpp reads every .gguf, and transformers every folder if LOOM_ABSORB_PYTHON names a Python that has it
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=tests/outside/llama_parts.sh
source "$(dirname "${BASH_SOURCE[0]}")/llama_parts.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
networks=86 decoders=8 readers=() reader=""
case "${1:-}" in
  --networks) networks=2000 decoders=0 ;;
  --decoders)
    networks=0 decoders=2000 reader="${LOOM_ABSORB_PYTHON:-}"
    if libraries="$(llama_libraries)"; then readers=(--llama "$libraries"); fi
    ;;
esac
python="$(checks_python onnxruntime numpy safetensors)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
library="$LOOM_ROOT/build/$preset/libloom.so"
[[ -f "$library" ]] || die "$library is not there; build it with LOOM_INSTALL=ON"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
status=0
if (( networks > 0 )); then
  LOOM_LIBRARY="$library" PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 "$python" tests/outside/export_check.py \
    "build/$preset/tests/field_runner" --count "$networks" | tee -a "$log" || status=1
fi
if (( decoders > 0 )); then
  "${reader:-$python}" -c 'import numpy, safetensors, transformers' 2>/dev/null || reader=""
  "${reader:-$python}" tests/outside/export_models.py "build/$preset/cli/loom" --count "$decoders" "${readers[@]}" |
    tee -a "$log" || status=1
fi
awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
  END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$log"
exit "$status"
