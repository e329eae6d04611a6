#!/usr/bin/env bash
# Brings what the preset wasm needs: Debian's clang-19 with its C and C++ libraries for WebAssembly, and into
# build/wasm-libraries PCRE2 and zlib, compiled from Debian's source packages, and the headers of the libraries
# that are headers alone. Does nothing when all of it is there.
#   scripts/install_wasm.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

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
mkdir -p "$work"/{state/lists/partial,cache/archives/partial,sources,tree/include,tree/lib}

mapfile -t missing < <(missing_of "${packages[@]}")
if (( ${#missing[@]} > 0 )); then
  say "installing: ${missing[*]}"
  { apt update && apt install -y --no-install-recommends "${missing[@]}"; } >"$work/log" 2>&1 || {
    say "note: not installed: ${missing[*]}: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
    exit 0
  }
fi

# Source packages, from where this machine has its packages, with lists of its own: the lines of the machine's
# own lists with another type.
source_list() {
  local list
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    if [[ -f "$list" ]]; then sed -n 's/^deb /deb-src /p' "$list"; fi
  done
}
source_lists() {
  local list
  mkdir -p "$work/lists"
  source_list >"$work/lists/machine.list"
  for list in /etc/apt/sources.list.d/*.sources; do
    if [[ -f "$list" ]]; then sed 's/^Types: .*/Types: deb-src/' "$list" >"$work/lists/$(basename "$list")"; fi
  done
}
fetch() {
  apt-get -q -o APT::Sandbox::User="$(id -un)" -o Dir::State="$work/state" -o Dir::State::status=/dev/null \
    -o Dir::Cache="$work/cache" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/lists" "$@" \
    >>"$work/log" 2>&1
}
source_lists
cd "$work/sources"
# A mirror may lack the newest of a package; then the one that the release came with.
release="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
if ! { fetch update && { fetch source --download-only "${sources[@]}" ||
  fetch source --download-only "${sources[@]/%//$release}"; }; }; then
  say "note: not fetched: the sources of ${sources[*]}: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
  exit 0
fi
for archive in *.orig.tar.*; do tar -xf "$archive"; done

# compile FOLDER ARCHIVE FLAG... -- FILE...: without threads of its own, and fit to be linked with code that has them.
compile() {
  local folder="$1" archive="$2" flags=()
  shift 2
  while [[ "$1" != -- ]]; do flags+=("$1"); shift; done
  shift
  (cd "$folder" && mkdir -p objects && cd objects &&
    clang-19 --target=wasm32-wasi -O2 -matomics -mbulk-memory -msimd128 -ffunction-sections -fdata-sections \
      -D_WASI_EMULATED_MMAN "${flags[@]}" -c "${@/#/../}" && ar rcD "$work/tree/lib/$archive" ./*.o)
}
pcre2="$(echo "$work"/sources/pcre2-*/)"
zlib="$(echo "$work"/sources/zlib-*/)"
cp "$pcre2/src/pcre2.h.generic" "$pcre2/src/pcre2.h"
cp "$pcre2/src/config.h.generic" "$pcre2/src/config.h"
cp "$pcre2/src/pcre2_chartables.c.dist" "$pcre2/src/pcre2_chartables.c"
# Patterns are in symbols of one byte (src/text/symbol_map.hpp), so PCRE2 needs no tables of Unicode.
mapfile -t parts < <(cd "$pcre2/src" && ls pcre2_*.c |
  grep -vE '_(jit_test|jit_match|jit_misc|printint|dftables|ucptables|fuzzsupport|maketables)\.c$')
compile "$pcre2/src" libpcre2-8.a -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DPCRE2_STATIC -I.. -- "${parts[@]}"
compile "$zlib" libz.a -DHAVE_UNISTD_H -Wno-deprecated-non-prototype -- \
  adler32.c crc32.c deflate.c inflate.c inffast.c inftrees.c trees.c zutil.c compress.c uncompr.c
cp "$pcre2/src/pcre2.h" "$zlib/zlib.h" "$zlib/zconf.h" /usr/include/xxhash.h "$work/tree/include/"
cp -r /usr/include/nlohmann "$work/tree/include/"
printf '%s\n' "$made" >"$work/tree/packages"
cd "$LOOM_ROOT"
rm -rf "$to"
mv "$work/tree" "$to"
