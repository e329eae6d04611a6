#!/usr/bin/env bash
# The Python package as it is installed: the wheel of a build, in environments that have nothing of
# the tree, with the whole suite against it: that of python3, and with --every of all Pythons from 3.8 on
# that are here. The wheel is audited, and its types are checked. The last line counts. Packages come from
# PyPI into build/; without them it is skipped.
#   tests/python/run.sh [PRESET] [--every]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset=dev every=no
for word in "$@"; do
  case "$word" in
    --every) every=yes ;;
    -h|--help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) die "unknown option '$word'; try --help" ;;
    *) preset="$word" ;;
  esac
done
built="$LOOM_ROOT/build/$preset"
work="$LOOM_ROOT/build/python"

skipped() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

library="$(find "$built" -maxdepth 1 \( -name 'libloom.so' -o -name 'libloom.dylib' \) 2>/dev/null | head -n 1)"
[[ -n "$library" ]] || skipped "build/$preset has no shared library; configure with -DLOOM_INSTALL=ON"
builder="$(checks_python scikit-build-core:scikit_build_core zopflipy:zopfli)" || skipped "$builder"

# The library as a wheel for others has it. It links all that can be linked, as
# bindings/python/CMakeLists.txt does, and has no readers of images. Sanitizers, and linkers other
# than Debian's, take the library as it was built.
portable() {
  local pcre zlib to="$work/portable/libloom.so"
  pcre="$(c++ -print-file-name=libpcre2-8.a)" zlib="$(c++ -print-file-name=libz.a)"
  [[ -f "$pcre" && -f "$zlib" && -f "$built/libloom.a" ]] || return 1
  mkdir -p "$work/portable"
  c++ -std=c++20 -O2 -fPIC -fvisibility=hidden -Isrc -Iinclude -c bindings/python/no_pictures.cpp \
    -o "$work/portable/no_pictures.o" >"$work/portable/log" 2>&1 || return 1
  c++ -shared -o "$to" -Wl,--allow-multiple-definition "$work/portable/no_pictures.o" \
    -Wl,--whole-archive "$built/libloom.a" -Wl,--no-whole-archive -static-libstdc++ \
    -static-libgcc "$pcre" "$zlib" -lm -ldl -pthread -Wl,--no-undefined -Wl,--gc-sections \
    -Wl,--version-script=bindings/python/exports.map -Wl,-s >>"$work/portable/log" 2>&1 || return 1
  printf '%s' "$to"
}
linked="$(portable)" && library="$linked" || say "note: the wheel holds the library as it was built"

# A wheel holds one library and every line of the package.
rm -rf "$work/wheel" "$work/empty"
mkdir -p "$work/wheel" "$work/empty"
"$builder" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work/wheel" \
  bindings/python -C cmake.define.LOOM_LIBRARY="$library" >&2
wheel="$(find "$work/wheel" -name '*.whl')"
"$builder" bindings/python/repack.py "$wheel"
say "$(basename "$wheel"): $(stat -c %s "$wheel") bytes"

passed=0 failed=0 skipped=0
# check WHAT CMD...: one test. add CMD...: as many as its last line counts.
check() {
  if "${@:2}" >"$work/log" 2>&1; then
    passed=$((passed + 1))
  else
    say "$1: FAILED"
    tail -n 40 "$work/log" >&2
    failed=$((failed + 1))
  fi
}
add() {
  local status=0 words
  "$@" 2>&1 | tee "$work/log" >&2 || status=1
  read -r -a words <<<"$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$work/log" | tail -n 1)"
  if (( ${#words[@]} == 6 )); then
    passed=$((passed + words[0])) failed=$((failed + words[2])) skipped=$((skipped + words[4]))
  else
    failed=$((failed + 1)) status=0
  fi
  (( status == 0 || words[2] > 0 )) || failed=$((failed + 1))
}
skip() {
  say "$1: skipped, $2"
  skipped=$((skipped + 1))
}

# Nothing but the system's C library is asked of the machine, and of it no more than glibc 2.35 has: what
# GCC 12 needs for exceptions. An older toolchain asks for less.
if [[ "$library" == "$linked" ]] && auditor="$(checks_python auditwheel)"; then
  check "size" test "$(stat -c %s "$wheel")" -lt 6850000
  check "audit" "$auditor" tests/python/audit.py "$wheel"
else
  skip "audit" "${auditor:-the wheel is not linked for other machines}"
fi
if typed="$(checks_python numpy scikit-learn:sklearn pandas mypy pyright)"; then
  # Both on what is installed here alone: no path of the tree's tests, and no cache in the tree.
  check "mypy --strict" env -C bindings/python "$typed" -m mypy --strict --cache-dir "$work/mypy"
  check "pyright" env -C bindings/python "$typed" -m pyright --pythonpath "$typed"
else
  skip "types" "$typed"
fi

# suite VENV PACKAGE...: from an empty folder, so that nothing of the tree is imported by chance.
export LOOM_PROGRAM="$built/cli/loom" LOOM_CAPI_TEST="$built/tests/capi/test_capi"
[[ -x "$LOOM_PROGRAM" ]] || unset LOOM_PROGRAM
[[ -x "$LOOM_CAPI_TEST" ]] || unset LOOM_CAPI_TEST
suite() {
  local python
  python="$(python_with "$@")" || { skip "$(basename "$1")" "$python"; return; }
  "$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
  add env -C "$work/empty" -u LOOM_LIBRARY -u PYTHONPATH PYTHONDONTWRITEBYTECODE=1 "$python" -X dev \
    "$LOOM_ROOT/tests/python/run.py"
}

# The environment of the suite has the packages of checks_python and nothing else: no path of the tree.
clean="$work/clean"
if others_packages="$(checks_python numpy scikit-learn:sklearn pandas)"; then
  [[ -x "$clean/bin/python" ]] || python3 -m venv "$clean"
  "$others_packages" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$clean/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/checks.pth"
  suite "$clean" numpy scikit-learn:sklearn pandas
else
  skip "suite" "$others_packages"
fi

# others: the other Pythons of this machine, one of each version.
others() {
  local python
  for python in "$HOME"/.pyenv/versions/*/bin/python $(compgen -c python3. | grep -E '^python3\.[0-9]+t?$' || true); do
    command -v "$python" >/dev/null && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 8))' 2>/dev/null &&
      "$python" -c 'import sys, sysconfig; print("%d.%d%s" % (*sys.version_info[:2], sysconfig.get_config_var("abiflags") or ""), sys.executable)'
  done | sort -u -k 1,1
}
if [[ "$every" == yes ]]; then
  own="$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')"
  while read -r version python; do
    [[ "$version" != "$own" ]] || continue
    say "== Python $version"
    "$python" -m venv "$work/py$version" >/dev/null 2>&1 || { skip "Python $version" "it makes no environment"; continue; }
    suite "$work/py$version" numpy
  done < <(others)
fi
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
