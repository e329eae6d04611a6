#!/usr/bin/env bash
# Random sounds of every form in Loom and in soundfile (sounds.py). The last line counts them. Packages come
# from PyPI into build/; without them, or without libsndfile, it is skipped.
#   tests/outside/sounds_check.sh [PRESET] [arguments of sounds.py]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
# without WHY
without() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

python="$(checks_python numpy soundfile)" || without "$python"
[[ -x "build/$preset/tests/sound_runner" ]] || without "build/$preset has no sound_runner"
"$python" -c 'import ctypes; ctypes.CDLL("libsndfile.so.1")' 2>/dev/null || without "libsndfile1 is not installed"
"$python" -B tests/outside/sounds.py --program "build/$preset/tests/sound_runner" "$@"
