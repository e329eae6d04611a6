#!/usr/bin/env bash
# Tests the build for ARM64 without such a processor: Debian's cross compiler, and qemu in the part of a
# processor with plain NEON, one with int8 dot products, and one with those of mixed signs. Brings the
# libraries (install_arm64.sh); skips what cannot be had.
#   scripts/arm64_test.sh            unit tests of number types, the kernels and ops that take minutes at most,
#                                    and the golden hashes of logits and training
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

case "${1:-}" in
  "") ;;
  -h|--help) usage; exit 0 ;;
  *) die "unknown option '$1'; try --help" ;;
esac

why="$(no_arm64)"
if [[ -n "$why" ]]; then
  say "skipped: $why"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
build_arm64 test_dtype test_ops test_conformance loom_hash || die "the build for ARM64 failed; see above"
logs=build/arm64/logs
rm -rf "$logs"
mkdir -p "$logs"

# program RUN CPU NAME FILTER: one test program; $logs/RUN.xml says how it went.
program() {
  local start=$SECONDS
  on_arm64 "$2" "build/arm64/tests/$3" --gtest_brief=1 --gtest_filter="$4" \
    --gtest_output="xml:$logs/$1.xml" >"$logs/$1.log" 2>&1 || printf 'ended with %d\n' "$?" >>"$logs/$1.log"
  printf '%d s\n' "$((SECONDS - start))" >"$logs/$1.time"
}

runs=()
# in_turn ARGUMENTS: program ARGUMENTS, as many at a time as there are cores.
in_turn() {
  runs+=("$1")
  while (( $(jobs -rp | wc -l) >= $(jobs_to_run) )); do wait -n; done
  program "$@" &
}

# What is left out of the kernels took 15 of 18 minutes when all ran (2026-11-23: 213 and 149 passed).
in_turn kernels max,sve=off test_conformance \
  '-Conformance.matmul_dx:Conformance.convert:Conformance.gemm:Conformance.topk'
in_turn number_types cortex-a53 test_dtype '*'
in_turn ops cortex-a53 test_ops '-Schedule.*:Activations/RandomPrograms.*/1:Fmath.*'
wait

passed=0
failed=0
skipped=0
for run in "${runs[@]}"; do
  counts="$(python3 tools/ctest_summary.py "$logs/$run.xml" 2>/dev/null || true)"
  if [[ "$counts" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    skipped=$((skipped + BASH_REMATCH[3]))
  else
    counts="ended without a result"
    failed=$((failed + 1))
  fi
  say "$run: $counts, $(<"$logs/$run.time")"
  if [[ ! "$counts" =~ \ 0\ failed ]]; then cat "$logs/$run.log"; fi
done
if tests/golden/hash_arm64.sh; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
