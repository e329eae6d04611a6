#!/usr/bin/env bash
# Suites of a build with sanitizers, for the parts of bench/nightly.sh. A build takes an hour on two cores and
# continues where it stopped.
#   bench/nightly/sanitized.sh address,undefined --build       builds all suites.
#   bench/nightly/sanitized.sh thread learn capi               builds and runs these suites.
#   bench/nightly/sanitized.sh thread --but learn capi         all but these.
# The builds are build/sanitized and build/tsan. The suites of the GPU are left out: they need a device.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
case "${1:-}" in
  address,undefined) preset=asan name=sanitized ;;
  thread) preset=tsan name=tsan ;;
  -h|--help) usage; exit 0 ;;
  *) die "unknown sanitizer '${1:-}'; try address,undefined or thread" ;;
esac
sanitizers="$1"
shift
build="build/$name"
how=()
if have ccache; then how+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
if [[ ! -f "$build/CMakeCache.txt" ]]; then how+=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12); fi
log="$build.log"

# fail WHAT
fail() {
  tail -n 60 "$log"
  say "$1 failed; see $log"
  printf '0 passed, 1 failed, 0 skipped\n'
  exit 1
}
mkdir -p build
cmake --preset "$preset" -B "$build" "-DLOOM_SANITIZE=$sanitizers" ${how[@]+"${how[@]}"} >"$log" 2>&1 ||
  fail "the configuration"

# Suites of the build: all, these, or all but these. An unknown name fails.
mapfile -t suites < <(python3 - "$build/tests/programs.json" "$@" <<'END'
import json, sys
rows = {row["suite"] for row in json.load(open(sys.argv[1]))} - {"test_gpu", "test_webgpu"}
words = sys.argv[2:]
asked = {f"test_{word}" for word in words if not word.startswith("--")}
if not asked <= rows:
    sys.exit(f"unknown suites: {' '.join(sorted(asked - rows))}")
chosen = asked if words and not words[0].startswith("--") else rows - asked
print("\n".join(sorted(chosen)))
END
)
(( ${#suites[@]} > 0 )) && [[ -n "${suites[0]}" ]] || fail "the choice of suites"
cmake --build "$build" -j "$(jobs_to_run)" --target loom_cli "${suites[@]}" >>"$log" 2>&1 || fail "the build"
if [[ "${1:-}" == --build ]]; then
  printf '%d passed, 0 failed, 0 skipped\n' "${#suites[@]}"
  exit 0
fi
# ThreadSanitizer of GCC 12 cannot map its shadow memory if addresses have more random bits than 28.
fixed=()
if [[ "$sanitizers" == thread && "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ]]; then
  fixed=(setarch "$(uname -m)" -R)
fi
exec ${fixed[@]+"${fixed[@]}"} tools/suites.py "$name" "${suites[@]}"
