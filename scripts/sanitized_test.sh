#!/usr/bin/env bash
# The unit tests of rooms that read untrusted input, by clang, with AddressSanitizer and UndefinedBehaviorSanitizer
# at once. The build of the fuzz targets has both. Whole builds with one of them are
# scripts/test.sh --preset asan and --preset ubsan.
#   scripts/sanitized_test.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
only_help "$@"

# They link their own room and those below it, which the fuzz targets need as well.
rooms=(base dtype io jinja)
if ! have clang++-14; then
  say "skipped: clang++-14 is not installed"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
log="$(mktemp)"
logs=build/fuzz/logs
trap 'rm -f "$log"' EXIT
if ! { configure fuzz && build fuzz --target "${rooms[@]/#/test_}"; } >"$log" 2>&1; then
  tail -n 60 "$log" >&2
  die "the build with sanitizers failed; see above"
fi
rm -rf "$logs"
mkdir -p "$logs"
for room in "${rooms[@]}"; do
  start=$SECONDS
  "build/fuzz/tests/test_$room" --gtest_brief=1 --gtest_output="xml:$logs/$room.xml" >"$logs/$room.log" 2>&1 ||
    printf 'ended with %d\n' "$?" >>"$logs/$room.log"
  printf '%d s\n' "$((SECONDS - start))" >"$logs/$room.time"
done
passed=0 failed=0 skipped=0
add_runs "$logs" "${rooms[@]}"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
