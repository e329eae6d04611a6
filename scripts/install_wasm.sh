#!/usr/bin/env bash
# Installs the needs of the preset wasm: Debian's clang-19 with its C and C++ libraries for WebAssembly. Puts PCRE2
# and zlib, compiled from Debian's source packages, and header-only libraries into build/wasm-libraries. If all of
# them are installed, it does nothing.
#   scripts/install_wasm.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/debian_sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_sources.sh"

packages=(clang-19 lld-19 wasi-libc libc++-19-dev-wasm32 libc++abi-19-dev-wasm32 libclang-rt-19-dev-wasm32
  nlohmann-json3-dev libxxhash-dev)
sources=(pcre2 zlib)

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

only_help "$@"

cd "$LOOM_ROOT"
to=build/wasm-libraries
made="${packages[*]} ${sources[*]}"
if [[ -f "$to/packages" && "$(<"$to/packages")" == "$made" ]] && have clang++-19; then exit 0; fi
have apt-get && have dpkg-query || {
  say "note: no apt-get here; install clang 19 with wasi-libc and libc++ for wasm32-wasi yourself"
  exit 0
}
mkdir -p build
work="$(mktemp -d "$PWD/build/wasm-fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT

mapfile -t missing < <(missing_of "${packages[@]}")
if (( ${#missing[@]} > 0 )); then
  say "installing: ${missing[*]}"
  { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$work/log" 2>&1 || {
    say "note: not installed: ${missing[*]}: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
    exit 0
  }
fi

if ! debian_sources "$work" "${sources[@]}"; then
  say "note: not fetched: the sources of ${sources[*]}: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
  exit 0
fi
cd "$work/sources"
for archive in *.orig.tar.*; do tar -xf "$archive"; done
pcre2_and_zlib "$work" clang-19 --target=wasm32-wasi "${wasm_flags[@]}"
printf '%s\n' "$made" >"$work/tree/packages"
cd "$LOOM_ROOT"
rm -rf "$to"
mv "$work/tree" "$to"
