#!/usr/bin/env bash
# Proves the walks of CONTRIBUTING.md: a toy layer and a toy dtype, each a patch that may touch only the files the design
# names, applied to a copy of the tree, built, and run through the suites that pick them up by themselves.
# usage: tests/extend/run.sh [BUILD_FOLDER]
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$(mktemp -d)}
tree=$work/tree
mkdir -p "$tree"
cd "$root"
git ls-files -z --cached --others --exclude-standard -- CMakeLists.txt CMakePresets.json cmake include src tests cli bench fuzz \
  | xargs -0 cp --parents -t "$tree" 2>/dev/null

allowed_layer="src/layers/registry.def src/layers/swap.cpp tests/layers/swap_test.cpp"
allowed_dtype="src/dtype/dtypes.def tests/dtype/int3_test.cpp"
touched() { grep '^+++ b/' "$1" | sed 's|^+++ b/||' | sort | tr '\n' ' ' | sed 's/ $//'; }
check() {
  if [ "$(touched "$1")" != "$2" ]; then
    echo "extend: $1 touches '$(touched "$1")', but the design allows '$2'" >&2
    exit 1
  fi
}
check tests/extend/layer_swap.patch "$allowed_layer"
check tests/extend/dtype_int3.patch "$allowed_dtype"
patch -d "$tree" -p1 -s < tests/extend/layer_swap.patch
patch -d "$tree" -p1 -s < tests/extend/dtype_int3.patch

launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S "$tree" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 -DLOOM_BUILD_TESTS=ON -DLOOM_BUILD_CLI=OFF \
  -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 "${launcher[@]}" >/dev/null
cmake --build "$work/build" --target test_layers test_dtype test_grid test_conformance | tail -n 1
# The tests of dtype/ list the released types and their bytes on purpose; the toy brings its own instead.
for room in layers grid conformance; do
  "$work/build/tests/test_$room" --gtest_brief=1
done
"$work/build/tests/test_layers" --gtest_filter='Swap*' --gtest_brief=1 | grep -q 'PASSED.*1 test'
"$work/build/tests/test_dtype" --gtest_filter='Int3*' --gtest_brief=1 | grep -q 'PASSED.*3 tests'
echo "extend: the toy layer and the toy dtype touch only the files the design says, and pass"
