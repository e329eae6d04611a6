#!/usr/bin/env bash
# Proves the walks of CONTRIBUTING.md with toys: a layer, a number type of three bits, an op, an optimizer and a
# loss. There are toys of a learning rule, a metric, an ONNX operator and a family too.
# Each is a patch that may touch only the files that its walk names. All are applied to one copy of
# the repository. There, tools/generate_api.py writes the files that follow from the row of the
# layer. The copy is built, and every suite that needs no GPU runs on it, whole. Lists of released
# things skip rows without a release (released() of layers/core/config.hpp and dtype/dtype.hpp). A
# second run in the same folder builds only changes.
# --patches: applies them and builds nothing, as CI does. --selection: the rooms that the toys are in, and those next
# to them. All suites take about half an hour.
# usage: tests/extend/run.sh [--patches | --selection] [BUILD_FOLDER]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
selection=no
patches=no
if [ "${1:-}" = --selection ]; then selection=yes; shift; fi
if [ "${1:-}" = --patches ]; then patches=yes; shift; fi
work=${1:-$(mktemp -d)}
if [ $# = 0 ]; then trap 'rm -rf "$work"' EXIT; fi
mkdir -p "$work/tree"
tree=$(cd "$work/tree" && pwd)
work=$(dirname "$tree")
cd "$root"

# allow PATCH FILE...: the patch touches these files, all of them and no others.
allow() {
  local patch=tests/extend/$1 wanted touched
  shift
  wanted=$(printf '%s\n' "$@" | sort)
  touched=$(sed -n 's|^+++ b/||p' "$patch" | sort)
  if [ "$touched" != "$wanted" ]; then
    printf 'extend: %s touches\n%s\nbut the design allows\n%s\n' "$patch" "$touched" "$wanted" >&2
    exit 1
  fi
}
allow layer_swap.patch api/layers.toml src/layers/swap.cpp tests/layers/swap_test.cpp
allow dtype_int3.patch src/dtype/dtypes.def tests/dtype/int3_test.cpp
allow op_roll.patch src/ops/ops.def src/ops/args/rows.hpp src/ops/roll.cpp src/backend/reference/roll.cpp \
  tests/conformance/roll_test.cpp

allow optimizer_signsgd.patch api/options/training.toml src/learn/optimizer/signsgd.cpp
allow onnx_square.patch src/onnx/operators/unary.cpp tests/formats/onnx_square_test.cpp
allow family_pebble.patch src/families/decoder/pebble.cpp
allow loss_charbonnier.patch api/options/training.toml src/learn/loss/charbonnier.cpp tests/learn/charbonnier_test.cpp
allow rule_sign_feedback.patch api/options/training.toml src/learn/rules/sign_feedback.cpp
allow metric_worst_error.patch api/options/training.toml src/learn/metrics/worst_error.cpp tests/learn/worst_error_test.cpp

# Files that are as they were keep their time, so that they are not built again.
fresh=$(mktemp -d "$work/fresh.XXXX")
git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$fresh" 2>/dev/null || true
for toy in tests/extend/*.patch; do
  patch -d "$fresh" -p1 -s --no-backup-if-mismatch < "$toy"
done
# Files that are generated from api/ are not edited by hand. The layer exists in C++, Python and
# TypeScript.
python3 "$fresh/tools/generate_api.py" >/dev/null
rm -rf "$fresh/tools/__pycache__"
for file in include/loom/layers.hpp bindings/python/loom/layers.py bindings/typescript/src/layers.ts; do
  grep -qE '(struct LOOM_API|class|function) Swap\b' "$fresh/$file" || {
    echo "extend: $file has no Swap" >&2
    exit 1
  }
done
for row in optimizer/kSignsgdOptimizer loss/kCharbonnierLoss rules/kSignFeedbackRule metrics/kWorstErrorMetric; do
  registry=src/learn/${row%/*}/registry.cpp
  grep -q "^    &${row#*/},\$" "$fresh/$registry" || {
    echo "extend: $registry has no ${row#*/}" >&2
    exit 1
  }
done
if [ "$patches" = yes ]; then
  echo "extend: a toy layer, number type, op, optimizer, loss, learning rule, metric, ONNX operator and family apply, which touch only the files the design says"
  exit 0
fi
(cd "$fresh" && find . -type f -print0) | while IFS= read -r -d '' file; do
  if ! cmp -s "$fresh/$file" "$tree/$file"; then
    mkdir -p "$(dirname "$tree/$file")"
    cp "$fresh/$file" "$tree/$file"
  fi
done
(cd "$tree" && find . -type f -print0) | while IFS= read -r -d '' file; do
  if [ ! -e "$fresh/$file" ]; then rm "$tree/$file"; fi
done
rm -rf "$fresh"

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
build=$work/build
cmake -S "$tree" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 -DLOOM_BUILD_TESTS=ON \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 "${launcher[@]}" >/dev/null
# GPU tests need a device.
mapfile -t suites < <(ninja -C "$build" -t targets all | sed -n 's/^\(test_[a-z0-9_]*\): phony$/\1/p' |
  grep -v -x -e test_gpu -e test_webgpu | sort -u)
if [ "${#suites[@]}" -lt 20 ]; then
  echo "extend: only ${#suites[@]} suites were found: ${suites[*]}" >&2
  exit 1
fi
if [ "$selection" = yes ]; then suites=(test_dtype test_layers test_grid test_conformance test_learn test_formats_onnx test_families); fi
start=$SECONDS
cmake --build "$build" --target "${suites[@]}" | tail -n 1
echo "extend: built ${#suites[@]} suites in $((SECONDS - start)) s"

# One per core; a suite's output is kept in its log.
start=$SECONDS
logs=$work/logs
mkdir -p "$logs"
export build logs
program_of() {
  if [ "$1" = test_capi ]; then
    ctest --test-dir "$build" -R '^capi[.]' --output-on-failure
  else
    "$build/tests/$1" --gtest_brief=1
  fi
}
run_suite() {
  local begin=$SECONDS
  if program_of "$1" >"$logs/$1" 2>&1; then
    echo "$1: $(grep -v '^$' "$logs/$1" | grep -E 'PASSED|passed' | tail -n 1), $((SECONDS - begin)) s"
  else
    echo "extend: $1 fails; the end of $logs/$1:" >&2
    tail -n 20 "$logs/$1" >&2
    return 1
  fi
}
export -f run_suite program_of
printf '%s\n' "${suites[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run_suite {}'
# The toys' own tests were among them.
for own in "test_layers Swap* 1" "test_dtype Int3* 3" "test_conformance Roll* 3" "test_conformance Conformance.roll 1" \
  "test_learn OptimizerRows.LowerTheLoss* 1" "test_formats_onnx OnnxSquare* 3" \
  "test_families *EveryFamily*/pebble 3" "test_learn Charbonnier* 2" "test_learn LossRows.LowerTheLoss 1" \
  "test_learn RuleRows.LowerTheLoss 1" "test_learn WorstError* 1"; do
  read -r suite filter count <<< "$own"
  "$build/tests/$suite" --gtest_filter="$filter" --gtest_brief=1 | grep -q "PASSED.*$count test" || {
    echo "extend: $suite has not run $count tests of $filter" >&2
    exit 1
  }
done
echo "extend: ${#suites[@]} suites pass with a toy layer, number type, op, optimizer, loss, learning rule, metric, ONNX operator and family, which touch only the files the design says" \
  "($((SECONDS - start)) s)"
