# Sourced by install_wasm.sh and install_wasm64.sh. Downloads source packages of Debian from the
# package sources of this machine, with separate lists, and compiles PCRE2 and zlib from them. It
# needs no rights, and changes nothing outside WORK.
# shellcheck shell=bash
set -euo pipefail

# The lines of the machine's own lists with another type.
source_lists() {
  local list
  mkdir -p "$1"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    if [[ -f "$list" ]]; then sed -n 's/^deb /deb-src /p' "$list"; fi
  done >"$1/machine.list"
  for list in /etc/apt/sources.list.d/*.sources; do
    if [[ -f "$list" ]]; then sed 's/^Types: .*/Types: deb-src/' "$list" >"$1/$(basename "$list")"; fi
  done
}

# debian_sources WORK PACKAGE...: their archives, into WORK/sources. Fails if one is unavailable;
# WORK/log has the reason.
debian_sources() {
  local work="$1" release
  shift
  source_lists "$work/lists"
  mkdir -p "$work"/{state/lists/partial,cache/archives/partial,sources}
  fetch() {
    apt-get -q -o APT::Sandbox::User="$(id -un)" -o Dir::State="$work/state" -o Dir::State::status=/dev/null \
      -o Dir::Cache="$work/cache" -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/lists" "$@" \
      >>"$work/log" 2>&1
  }
  # A mirror may lack the newest version of a package; then the version of the release is used.
  release="$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)"
  (cd "$work/sources" && fetch update &&
    { fetch source --download-only "$@" || fetch source --download-only "${@/%//$release}"; })
}

# unpack_sources WORK [PACKAGE]...: the sources of all or these packages, with Debian's patches, into
# WORK/unpacked/NAME. Prints a line for each: name and version.
unpack_sources() {
  local work="$1" description name version
  shift
  mkdir -p "$work/unpacked"
  for description in "$work"/sources/*.dsc; do
    name="$(sed -n 's/^Source: //p' "$description" | head -n 1)"
    version="$(sed -n 's/^Version: //p' "$description" | head -n 1)"
    (( $# == 0 )) || [[ " $* " == *" $name "* ]] || continue
    [[ -d "$work/unpacked/$name" ]] ||
      dpkg-source --no-check --no-copy -x "$description" "$work/unpacked/$name" >>"$work/log" 2>&1 || return
    printf '%s %s\n' "$name" "$version"
  done
}

# The flags of WebAssembly: without its own threads, but linkable with code that has threads.
# shellcheck disable=SC2034
wasm_flags=(-matomics -mbulk-memory -msimd128 -D_WASI_EMULATED_MMAN)

# pcre2_and_zlib WORK COMPILER...: builds their archives and headers, into WORK/tree, from the
# unpacked sources.
pcre2_and_zlib() {
  local work="$1" pcre2 zlib parts
  shift
  pcre2="$(echo "$work"/sources/pcre2-*/)"
  zlib="$(echo "$work"/sources/zlib-*/)"
  mkdir -p "$work"/tree/{include,lib}
  cp "$pcre2/src/pcre2.h.generic" "$pcre2/src/pcre2.h"
  cp "$pcre2/src/config.h.generic" "$pcre2/src/config.h"
  cp "$pcre2/src/pcre2_chartables.c.dist" "$pcre2/src/pcre2_chartables.c"
  # Patterns are in symbols of one byte (src/text/models/symbol_map.hpp), so PCRE2 needs no tables of Unicode.
  mapfile -t parts < <(cd "$pcre2/src" && ls pcre2_*.c |
    grep -vE '_(jit_test|jit_match|jit_misc|printint|dftables|ucptables|fuzzsupport|maketables)\.c$')
  compile_archive "$pcre2/src" "$work/tree/lib/libpcre2-8.a" "$@" -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 \
    -DPCRE2_STATIC -I.. -- "${parts[@]}"
  compile_archive "$zlib" "$work/tree/lib/libz.a" "$@" -DHAVE_UNISTD_H -Wno-deprecated-non-prototype -- \
    adler32.c crc32.c deflate.c inflate.c inffast.c inftrees.c trees.c zutil.c compress.c uncompr.c
  cp "$pcre2/src/pcre2.h" "$zlib/zlib.h" "$zlib/zconf.h" /usr/include/xxhash.h "$work/tree/include/"
  cp -r /usr/include/nlohmann "$work/tree/include/"
}

# compile_archive FOLDER ARCHIVE COMPILER... -- FILE...: AR is the archiver, ar if unset.
compile_archive() {
  local folder="$1" archive="$2" compiler=()
  shift 2
  while [[ "$1" != -- ]]; do compiler+=("$1"); shift; done
  shift
  # A file at a time, because the compiler for Windows accepts one alone. There, objects end in .obj.
  (cd "$folder" && mkdir -p objects && cd objects && printf '../%s\0' "$@" |
    xargs -0 -n 1 -P "$(nproc)" "${compiler[@]}" -O2 -ffunction-sections -fdata-sections -c &&
    "${AR:-ar}" rcD "$archive" ./*)
}
