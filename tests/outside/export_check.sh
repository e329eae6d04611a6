#!/usr/bin/env bash
# Random networks with every field away from its default, written in each format and read by the other side: networks by
# Loom and ONNX Runtime (export_check.py), decoders as .gguf and folders (export_models.py). The last line counts.
# Packages come from PyPI into build/; without them it is skipped.
#   tests/outside/export_check.sh [PRESET] [--whole]
#   --whole: 2,000 of each; otherwise 86 and 8
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
networks=86 decoders=8
if [[ "${1:-}" == --whole ]]; then networks=2000 decoders=2000; fi
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
LOOM_LIBRARY="$library" PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 "$python" tests/outside/export_check.py \
  "build/$preset/tests/field_runner" --count "$networks" | tee -a "$log" || status=1
"$python" tests/outside/export_models.py "build/$preset/cli/loom" --count "$decoders" | tee -a "$log" || status=1
awk '/^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$/ { p += $1; f += $3; s += $5 }
  END { printf "%d passed, %d failed, %d skipped\n", p, f, s }' "$log"
exit "$status"
