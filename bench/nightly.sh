#!/usr/bin/env bash
# What takes longer than a change can wait: every case of every kernel over software GPUs, all sanitizers, all
# compilers of the golden hashes, WebAssembly with addresses of 64 bits, every suite with the toys of tests/extend,
# and the fuzz targets, over their corpora and for a while.
#   bench/nightly.sh                 everything, hours on two cores; the last lines go into docs/nightly.md
#   bench/nightly.sh gpu extend      these steps: gpu, wasm, arm64, targets, corpora, asan, ubsan, tsan, hashes, grids,
#                                consumer, options, extend, fuzz
# Needs what scripts/test.sh installs. $LOOM_FUZZ_SECONDS: the time for each fuzz target, 600 unless told.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

every=(gpu wasm arm64 targets corpora asan ubsan tsan hashes grids consumer options extend fuzz)

fuzz_all() {
  local target status=0
  for target in fuzz/fuzz_*.cpp; do
    target="${target#fuzz/fuzz_}"
    fuzz/run.sh "${target%.cpp}" -1 "${LOOM_FUZZ_SECONDS:-600}" || status=1
  done
  return "$status"
}

step() {
  case "$1" in
    gpu) scripts/gpu_test.sh --whole && scripts/gpu_test.sh --every-case ;;
    wasm) scripts/wasm_test.sh --whole ;;
    corpora) scripts/fuzz_corpora.sh && scripts/sanitized_test.sh ;;
    arm64) scripts/arm64_test.sh --all ;;
    targets) scripts/targets.sh --every ;;
    asan|ubsan|tsan) scripts/test.sh --preset "$1" ;;
    hashes) tests/golden/hash_matrix.sh --all ;;
    grids) LOOM_EVERY_CASE=1 build/dev/tests/test_learn --gtest_brief=1 --gtest_filter='Grids/*' ;;
    consumer) tests/consumer/run.py --whole ;;
    options) tests/consumer/options.py ;;
    extend) tests/extend/run.sh ;;
    fuzz) fuzz_all ;;
    *) die "unknown step '$1'; the steps are ${every[*]}" ;;
  esac
}

case "${1:-}" in
  -h|--help) usage; exit 0 ;;
esac
steps=("$@")
(( $# > 0 )) || steps=("${every[@]}")
for name in "${steps[@]}"; do
  case " ${every[*]} " in
    *" $name "*) ;;
    *) die "unknown step '$name'; the steps are ${every[*]}" ;;
  esac
done
logs=build/nightly
mkdir -p "$logs"
failed=0
for name in "${steps[@]}"; do
  start=$SECONDS verdict=ok
  step "$name" >"$logs/$name.log" 2>&1 || { verdict=FAILED failed=1; }
  printf '| %s | %s | %s | %d min | %s |\n' "$(date -u +%F)" "$name" "$verdict" "$(((SECONDS - start) / 60))" \
    "$(tail -n 1 "$logs/$name.log")"
done
exit "$failed"
