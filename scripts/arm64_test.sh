#!/usr/bin/env bash
# Tests the ARM64 build without such a processor, with Debian's cross compiler and qemu. qemu emulates processors
# with plain NEON, with int8 dot products, and with those of mixed signs. Installs the libraries
# (install_arm64.sh). Skips parts whose needs are unavailable.
#   scripts/arm64_test.sh            a sample of the golden hashes of logits and training, if the change affects them.
#   scripts/arm64_test.sh build      builds the programs for that.
#   scripts/arm64_test.sh --whole    all of the golden hashes, and unit tests of number types.
#   scripts/arm64_test.sh --all      also the kernels and ops that take minutes at most (a step of bench/nightly.sh).
# The change: $LOOM_CHANGED_FILES names a file with its paths. The sample: $LOOM_SAMPLE_SEED, else the hash of the tree.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/sample.sh
source "$(dirname "${BASH_SOURCE[0]}")/sample.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

all=no whole=no part=all
case "${1:-}" in
  --all) all=yes whole=yes; shift ;;
  --whole) whole=yes; shift ;;
  build) part=build; shift ;;
esac
only_help "$@"

# A change that does not affect the hashes runs no test.
mapfile -t sources < <(python3 tests/golden/sources.py)
(( ${#sources[@]} > 0 )) || die "tests/golden/sources.py printed nothing"
if [[ "$whole" == no ]] && changed="$(changes_to "${sources[@]}")" && [[ -z "$changed" ]]; then
  say "arm64: left out, because nothing that its hashes depend on changed"
  printf '0 passed, 0 failed, 0 skipped\n'
  exit 0
fi

why="$(no_arm64)"
if [[ -n "$why" ]]; then
  say "skipped: $why"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
targets=(loom_hash)
if [[ "$whole" == yes ]]; then targets+=(test_dtype); fi
if [[ "$all" == yes ]]; then targets+=(test_ops test_conformance); fi
build_arm64 "${targets[@]}" || die "the build for ARM64 failed; see above"
[[ "$part" != build ]] || exit 0
logs=build/arm64/logs
rm -rf "$logs"
mkdir -p "$logs"

# program RUN CPU NAME FILTER: one test program; $logs/RUN.xml has its results.
program() {
  local start=$SECONDS
  on_arm64 "$2" "build/arm64/tests/$3" --gtest_filter="$4" \
    --gtest_output="xml:$logs/$1.xml" >"$logs/$1.log" 2>&1 || printf '\nended with %d\n' "$?" >>"$logs/$1.log"
  printf '%d s\n' "$((SECONDS - start))" >"$logs/$1.time"
}

runs=()
# in_turn ARGUMENTS: program ARGUMENTS, one per core at a time.
in_turn() {
  runs+=("$1")
  while (( $(jobs -rp | wc -l) >= $(jobs_to_run) )); do wait -n; done
  program "$@" &
}

# The omitted kernels took 15 of 18 minutes when all ran (2026-11-23: 213 and 149 passed).
if [[ "$all" == yes ]]; then
  in_turn kernels max,sve=off test_conformance \
    '-Conformance.matmul_dx:Conformance.convert:Conformance.gemm:Conformance.topk'
  in_turn ops cortex-a53 test_ops '-Schedule.*:Activations/RandomPrograms.*/1:Fmath.*'
fi
if [[ "$whole" == yes ]]; then in_turn number_types cortex-a53 test_dtype '*'; fi
wait

passed=0
failed=0
skipped=0
add_runs "$logs" ${runs[@]+"${runs[@]}"}
how=()
[[ "$whole" == no ]] || how=(--every)
hashes="$(tests/golden/hash_arm64.sh ${how[@]+"${how[@]}"})" || failed=$((failed + 1))
if [[ "$hashes" =~ ([0-9]+)\ runs\ under\ qemu,\ 0\ differ ]]; then passed=$((passed + 1)); fi
say "$hashes"
slowest_tests "$logs" >&2
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
