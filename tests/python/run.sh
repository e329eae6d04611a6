#!/usr/bin/env bash
# The Python package as it is installed: the wheel of a build, in an environment that has nothing of
# the tree, with the whole suite against it. The last line counts. Packages come from PyPI into
# build/; without them it is skipped.
#   tests/python/run.sh [PRESET]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
built="$LOOM_ROOT/build/$preset"
work="$LOOM_ROOT/build/python"

skipped() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

library="$(find "$built" -maxdepth 1 \( -name 'libloom.so' -o -name 'libloom.dylib' \) 2>/dev/null | head -n 1)"
[[ -n "$library" ]] || skipped "build/$preset has no shared library; configure with -DLOOM_INSTALL=ON"
builder="$(python_with "$work/builder" scikit-build-core:scikit_build_core)" || skipped "$builder"

# A wheel holds one library and every line of the package.
rm -rf "$work/wheel" "$work/empty"
mkdir -p "$work/wheel" "$work/empty"
"$builder" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work/wheel" \
  bindings/python -C cmake.define.LOOM_LIBRARY="$library" >&2
wheel="$(find "$work/wheel" -name '*.whl')"
say "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"

python="$(python_with "$work/clean" numpy scikit-learn:sklearn)" || skipped "$python"
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"

# From an empty folder, so that nothing of the tree is imported by chance.
cd "$work/empty"
export LOOM_PROGRAM="$built/cli/loom" LOOM_CAPI_TEST="$built/tests/capi/test_capi"
[[ -x "$LOOM_PROGRAM" ]] || unset LOOM_PROGRAM
[[ -x "$LOOM_CAPI_TEST" ]] || unset LOOM_CAPI_TEST
exec env -u LOOM_LIBRARY -u PYTHONPATH PYTHONDONTWRITEBYTECODE=1 "$python" -X dev "$LOOM_ROOT/tests/python/run.py"
