#!/usr/bin/env bash
# Runs every fuzz target once over its corpus with AddressSanitizer and UndefinedBehaviorSanitizer, without fuzzing;
# fuzz/run.sh builds the targets. Every change runs the same without sanitizers (the tests corpus_TARGET).
#   scripts/fuzz_corpora.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
only_help "$@"

if ! have clang++-14; then
  say "skipped: clang++-14 is not installed"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
configure fuzz >/dev/null || die "the preset fuzz cannot be configured"
passed=0 failed=0
for target in fuzz/fuzz_*.cpp; do
  target="${target#fuzz/fuzz_}"
  if fuzz/run.sh "${target%.cpp}" 0; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
(( failed == 0 ))
