#!/usr/bin/env bash
# Runs a command with its own form of counts, and closes with "N passed, N failed, N skipped".
#   bench/nightly/counted.sh COMMAND...
# A program of GoogleTest counts its tests; any other command is one test.
set -euo pipefail
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
status=0
"$@" 2>&1 | tee "$log" || status=$?
# count WORD: the number before "tests" in GoogleTest's line of that word.
count() {
  sed -n "s/^\[  $1 *\] \([0-9]*\) tests\{0,1\}[.,].*/\1/p" "$log" | head -n 1
}
passed="$(count PASSED)" failed="$(count FAILED)" skipped="$(count SKIPPED)"
if [[ -z "$passed$failed" ]]; then
  if (( status == 0 )); then passed=1; else failed=1; fi
fi
if (( status != 0 && ${failed:-0} == 0 )); then failed=1; fi
printf 'ended with status %d\n' "$status"
printf '%d passed, %d failed, %d skipped\n' "${passed:-0}" "${failed:-0}" "${skipped:-0}"
(( ${failed:-0} == 0 ))
