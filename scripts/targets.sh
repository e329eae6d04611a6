#!/usr/bin/env bash
# The golden hashes on other systems: cross-compiled by the clang of the PyPI package ziglang, run under qemu-user or
# Wine. Reports for each what ran, or what was missing. ARM64 with glibc: arm64_test.sh.
#   scripts/targets.sh                       every target that is compiled for other systems.
#   scripts/targets.sh riscv64 windows       these: riscv64, x86_64-musl, arm64-musl, windows, macos.
#   scripts/targets.sh native                this system with its own compiler (CXX), without Debian's packages.
#   scripts/targets.sh --every ...           every number type on every instruction set, in chunks and with threads.
# The first build of a target takes minutes: its C++ library is compiled as well. There is no runner for macOS.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

crossed=(riscv64 x86_64-musl arm64-musl windows macos)
known=("${crossed[@]}" native)
every=no
asked=()
for word in "$@"; do
  case "$word" in
    -h|--help) usage; exit 0 ;;
    --every) every=yes ;;
    *) [[ " ${known[*]} " == *" $word "* ]] || die "unknown target '$word'; the targets are ${known[*]}"
      asked+=("$word") ;;
  esac
done
(( ${#asked[@]} > 0 )) || asked=("${crossed[@]}")

golden=tests/golden/hashes.txt
golden_training=tests/golden/training.txt
work="$PWD/build/targets"
mkdir -p "$work/headers/include"
export ZIG_GLOBAL_CACHE_DIR="$work/cache" WINEPREFIX="$work/wine" WINEDEBUG=-all

# triple_of TARGET: its name for the compiler.
triple_of() {
  case "$1" in
    riscv64) printf 'riscv64-linux-musl' ;;
    x86_64-musl) printf 'x86_64-linux-musl' ;;
    arm64-musl) printf 'aarch64-linux-musl' ;;
    windows) printf 'x86_64-windows-gnu' ;;
    macos) printf 'aarch64-macos' ;;
    native) printf 'native' ;;
  esac
}

# runner_of TARGET: the words before its program, one a line; fails with the missing part.
runner_of() {
  case "$1" in
    riscv64) need qemu-riscv64-static qemu-user-static ;;
    arm64-musl) need qemu-aarch64-static qemu-user-static && printf '%s\n' -cpu max ;;
    x86_64-musl) [[ "$(uname -sm)" == "Linux x86_64" ]] || { printf 'this machine is not x86-64'; return 1; } ;;
    windows) need wine wine64 ;;
    macos) printf 'nothing here runs programs of macOS'; return 1 ;;
    native) ;;
  esac
}
need() {
  have "$1" || { printf '%s (Debian: %s) is not installed' "$1" "$2"; return 1; }
  printf '%s\n' "$1"
}

# build_target TARGET: the program of the hashes alone. Libraries that it does not link are left
# out, and the headers of the others depend on no system.
build_target() {
  local how=() name
  # This compiler writes debug information by default.
  case "$1" in *musl|riscv64) how+=(-DCMAKE_EXE_LINKER_FLAGS=-s) ;; esac
  if [[ "$1" != native ]]; then
    how+=("-DCMAKE_TOOLCHAIN_FILE=$PWD/cmake/zig.cmake" "-DLOOM_ZIG=$zig" "-DLOOM_ZIG_TARGET=$(triple_of "$1")")
  elif have ccache; then
    how+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  for name in ZLIB_INCLUDE ZLIB_LIBRARY PCRE2_INCLUDE PCRE2_LIBRARY; do how+=("-DLOOM_$name=/nowhere"); done
  cmake -S . -B "$work/$(triple_of "$1")" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O2 -DLOOM_BUILD_HASH=ON \
    -DLOOM_BUILD_CLI=OFF -DLOOM_INSTALL=OFF -DLOOM_WEBGPU=OFF "${how[@]}" -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 && nice cmake --build "$work/$(triple_of "$1")" -j "$(jobs_to_run)" --target loom_hash
}

# run ARGUMENT...: the program of the current target, without the carriage returns of Windows.
run() {
  "${runner[@]}" "$program" "$@" 2>&1 | tr -d '\r'
}
expect_logits() {  # TARGET DTYPE ISA THREADS CHUNK
  local got
  got="$(run verify hash --shape shakespeare --dtype "$2" --prompt-tokens 113 --isa "$3" --threads "$4" --chunk "$5" || true)"
  judge "$1: $2 $3 threads $4 chunk $5" "$got" "$(awk -v d="$2" '$1 == d {print $2}' "$golden")"
}
# The kinds of layers that training.txt names: all but those without a release.
expect_training() {  # TARGET ISA THREADS
  local got
  got="$(run verify training --isa "$2" --threads "$3" |
    awk 'NR == FNR { known[$1]; next } $1 in known' "$golden_training" - || true)"
  judge "$1: training $2 threads $3" "$got" "$(<"$golden_training")"
}
judge() {  # WHAT GOT WANTED
  runs=$((runs + 1))
  [[ -n "$3" && "$2" == "$3" ]] && return
  differ=$((differ + 1))
  say "$1 differs: $(head -c 300 <<<"$2")"
}

hashes_of() {  # TARGET
  local isa dtype isas
  mapfile -t isas < <(run isas)
  (( ${#isas[@]} > 0 )) || { differ=1; say "$1: the program names no set of instructions"; return; }
  for isa in "${isas[@]}"; do
    for dtype in f32 bf16 q8_0 q4_0 ternary q4_k q6_k; do
      expect_logits "$1" "$dtype" "$isa" 2 64
      [[ "$every" == yes ]] || continue
      expect_logits "$1" "$dtype" "$isa" 1 113
      expect_logits "$1" "$dtype" "$isa" 7 7
    done
    expect_training "$1" "$isa" 2
  done
  told="${isas[*]}"
}

# bring_compiler: prints its program, or why it is unavailable.
bring_compiler() {
  local python
  python="$(python_with "$work/venv" ziglang)" || { printf '%s' "$python"; return 1; }
  "$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))'
}
# skip WHY: ends the script if no target can be built.
skip() {
  say "skipped: $1"
  printf '0 passed, 0 failed, %d skipped\n' "${#asked[@]}"
  exit 0
}
# prepare: the compiler of other systems, and the headers that it may see.
prepare() {
  local tool
  zig="$(bring_compiler)" || skip "$zig"
  [[ -f /usr/include/xxhash.h && -d /usr/include/nlohmann ]] ||
    skip "libxxhash-dev and nlohmann-json3-dev are not installed"
  cp /usr/include/xxhash.h "$work/headers/include/"
  cp -r /usr/include/nlohmann "$work/headers/include/"
  mkdir -p "$work/bin"
  for tool in ar ranlib; do
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$work/bin/$tool"
    chmod +x "$work/bin/$tool"
  done
}
if [[ "${asked[*]}" != native ]]; then prepare; fi

passed=0 failed=0 skipped=0
for target in "${asked[@]}"; do
  log="$work/$target.log"
  if ! build_target "$target" >"$log" 2>&1; then
    tail -n 40 "$log" >&2
    say "$target: cannot be built ($log)"
    failed=$((failed + 1))
    continue
  fi
  program="$work/$(triple_of "$target")/tests/golden/loom_hash"
  [[ -f "$program" ]] || program+=.exe
  size="$(awk '{printf "%.1f MB", $1 / 1e6}' <<<"$(stat -c %s "$program")")"
  if ! words="$(runner_of "$target")"; then
    say "$target: built ($size), not run: $words"
    skipped=$((skipped + 1))
    continue
  fi
  runner=()
  if [[ -n "$words" ]]; then mapfile -t runner <<<"$words"; fi
  # Wine makes its folder at the first run, and prints messages.
  [[ "$target" != windows ]] || run isas >/dev/null || true
  runs=0 differ=0 told=""
  start=$SECONDS
  hashes_of "$target"
  say "$target: $runs runs in $((SECONDS - start)) s, $differ differ ($told; $(triple_of "$target"), $size)"
  if (( differ == 0 )); then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
