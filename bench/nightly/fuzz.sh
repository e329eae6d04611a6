#!/usr/bin/env bash
# Fuzz targets for $LOOM_FUZZ_SECONDS each (600), as many at once as there are cores; a part of bench/nightly.sh.
#   bench/nightly/fuzz.sh TARGET...
# docs/fuzz-log.md keeps the lines of notable runs.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

(( $# > 0 )) || die "which targets? See fuzz/"
if ! have clang++-14; then
  say "skipped: clang++-14 is not installed"
  printf '0 passed, 0 failed, %d skipped\n' "$#"
  exit 0
fi
configure fuzz >/dev/null || die "the preset fuzz cannot be configured"
# One at a time, since all share their rooms.
for target in "$@"; do
  fuzz/run.sh "$target" 0 >/dev/null || die "fuzz/run.sh $target 0 failed"
done
logs=build/nightly/fuzz
mkdir -p "$logs"
one() {
  local status=0
  fuzz/run.sh "$1" -1 "${LOOM_FUZZ_SECONDS:-600}" >"$logs/$1.log" 2>&1 || status=$?
  if (( status != 0 )); then printf 'ended with status %d\n' "$status" >>"$logs/$1.log"; fi
  cat "$logs/$1.log"
  printf '%d\n' "$status" >"$logs/$1.status"
}
rm -f "$logs"/*.status
for target in "$@"; do
  while (( $(jobs -rp | wc -l) >= $(jobs_to_run) )); do wait -n; done
  one "$target" &
done
wait
passed=0 failed=0
for target in "$@"; do
  if [[ "$(cat "$logs/$target.status" 2>/dev/null)" == 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
printf '%d passed, %d failed, 0 skipped\n' "$passed" "$failed"
(( failed == 0 ))
