#!/usr/bin/env bash
# Installs the needs of the preset wasm64 besides install_wasm.sh: C and C++ libraries for WebAssembly with 64-bit
# addresses. Debian has them as sources alone. Compiles wasi-libc, libc++, the helpers of clang, PCRE2 and zlib into
# build/wasm64-libraries (docs/decisions/0068-beyond-4-gib.md). If all of them exist, it does nothing.
#   scripts/install_wasm64.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/debian_sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_sources.sh"

sources=(wasi-libc llvm-toolchain-19 pcre2 zlib)

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

only_help "$@"

cd "$LOOM_ROOT"
scripts/install_wasm.sh
to=build/wasm64-libraries
made="${sources[*]} $(cksum <cmake/wasm64/system.c)"
if [[ -f "$to/packages" && "$(<"$to/packages")" == "$made" ]]; then exit 0; fi
have apt-get && have clang++-19 && [[ -d /usr/include/wasm32-wasi ]] || {
  say "note: what scripts/install_wasm.sh brings is not there, so no libraries for memory64 can be compiled"
  exit 0
}
work="$(mktemp -d "$PWD/build/wasm64-fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT
if ! debian_sources "$work" "${sources[@]}"; then
  say "note: not fetched: the sources of ${sources[*]}: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
  exit 0
fi
system="$PWD/cmake/wasm64/system.c" one_errno="$PWD/cmake/wasm/__errno.h"
cd "$work/sources"
for archive in *.orig.tar.*; do
  case "$archive" in
    llvm-*) tar -xf "$archive" --wildcards '*/libcxx/src/*' '*/libcxxabi/src/*' '*/libcxxabi/include/*' \
      '*/compiler-rt/lib/builtins/*' ;;
    *) tar -xf "$archive" ;;
  esac
done
llvm="$(echo "$work"/sources/llvm-*/)" libc="$(echo "$work"/sources/wasi-libc-*/)"
include="$work/tree/include/wasm64-wasi" lib="$work/tree/lib/wasm64-wasi"
mkdir -p "$include" "$lib"

# The headers equal those for 32 bits, except for the largest numbers of five types, and for api.h,
# whose structs with addresses have other sizes.
cp -r /usr/include/wasm32-wasi/. "$include/"
sed -i '/_Static_assert/d; /#error .*only supports wasm32/d' "$include/wasi/api.h"
sed -i -E 's/^(#define (INTPTR|UINTPTR|PTRDIFF|SIZE)_(MIN|MAX) +U?INT)32/\164/' "$include/bits/stdint.h"
cp "$one_errno" "$include/__errno.h"

common=(--target=wasm64-wasi -O2 -matomics -mbulk-memory -mthread-model single -fno-trapping-math -ffunction-sections
  -fdata-sections -w -nostdlibinc)
# objects_of ARCHIVE JOB...: each job is the words of a compiler, one a line of stdin; all into one archive.
objects="$work/objects"
mkdir -p "$objects"
compile_each() {  # PREFIX COMPILER... : names of files come by stdin
  local prefix="$1"
  shift
  # shellcheck disable=SC2016
  xargs -P "$(jobs_to_run)" -I{} sh -c 'out="$1_$(basename "$2" | tr . _).o"; shift 2; exec "$@" -o "$out"' \
    - "$objects/$prefix" {} "$@" -c {} >>"$work/log" 2>&1
}
archive() {
  ar rcD "$1" "$objects"/*.o
  rm -f "$objects"/*.o
}
musl="$libc/libc-top-half/musl" bottom="$libc/libc-bottom-half"
c=(clang-19 "${common[@]}" -isystem "$include")
# The parts of musl without a system: no threads, signals, pipes and names of temporary files.
find "$musl"/src/{errno,exit,string,stdlib,ctype,internal,locale,multibyte,stdio,math} -maxdepth 1 -name '*.c' |
  grep -vE '/(__errno_location|_Exit|abort|abort_lock|strsignal|qsort|procfdname|syscall|syscall_ret|vdso|version|.*textdomain.*|dcngettext|__lockfile|f(un|try)?lockfile|p(open|close)|remove|rename|te?mp(nam|file)|fma|lgamma.*|__signbit.?|__fpclassify.?|(ceil|floor|trunc|rint|nearbyint|sqrt|fabs|copysign|fmin|fmax)f?)\.c$' |
  compile_each top "${c[@]}" -I"$musl/src/include" -I"$musl/src/internal" -I"$musl/arch/wasm32" -I"$musl/arch/generic" \
    -I"$libc/libc-top-half/headers/private"
c+=(-I"$bottom/headers/private" -I"$bottom/cloudlibc/src/include" -I"$bottom/cloudlibc/src")
{
  find "$bottom"/cloudlibc/src/libc/{stdlib,time,unistd,sys/uio} -name '*.c' |
    grep -E '/(_Exit|CLOCK_.*|clock_gettime|time|close|lseek|write|writev)\.c$'
  find "$bottom/sources" -name '*.c' |
    grep -E '/(__main_void|__original_main|abort|errno|isatty|sbrk|math/.*|reallocarray)\.c$'
  printf '%s\n' "$system"
} | compile_each bottom "${c[@]}"
echo "$libc/dlmalloc/src/dlmalloc.c" | compile_each malloc "${c[@]}" -I"$libc/dlmalloc/include"
archive "$lib/libc.a"
for start in command reactor; do
  "${c[@]}" -c "$bottom/crt/crt1-$start.c" -o "$lib/crt1-$start.o"
done

# libc++ with the headers of Debian's build for 32 bits, whose configuration names no size.
cxx=(clang++-19 -std=c++23 "${common[@]}" -fno-exceptions -nostdinc++ -isystem /usr/include/wasm32-wasi/c++/v1
  -isystem "$include" -I"$llvm/libcxx/src" -I"$llvm/libcxxabi/include")
find "$llvm/libcxx/src" -maxdepth 1 -name '*.cpp' |
  grep -vE '/(atomic|barrier|condition_variable.*|future|mutex.*|shared_mutex|thread|new)\.cpp$' |
  compile_each cxx "${cxx[@]}" -D_LIBCPP_BUILDING_LIBRARY -DLIBCXX_BUILDING_LIBCXXABI
find "$llvm/libcxx/src/ryu" -name '*.cpp' | compile_each ryu "${cxx[@]}" -D_LIBCPP_BUILDING_LIBRARY -DLIBCXX_BUILDING_LIBCXXABI
archive "$lib/libc++.a"
for name in abort_message cxa_aux_runtime cxa_default_handlers cxa_guard cxa_handlers cxa_noexception cxa_vector cxa_virtual \
  private_typeinfo stdlib_exception stdlib_new_delete stdlib_stdexcept stdlib_typeinfo; do
  printf '%s\n' "$llvm/libcxxabi/src/$name.cpp"
done | compile_each abi "${cxx[@]}" -D_LIBCXXABI_BUILDING_LIBRARY -D_LIBCXXABI_HAS_NO_THREADS \
  -DLIBCXXABI_NON_DEMANGLING_TERMINATE -D_LIBCPP_ENABLE_CXX17_REMOVED_UNEXPECTED_FUNCTIONS
archive "$lib/libc++abi.a"

# Integers and floats of 128 bits. clang calls comparisons of the latter that give an int.
sed -i 's/^typedef long CMP_RESULT;/typedef int CMP_RESULT;/' "$llvm/compiler-rt/lib/builtins/fp_compare_impl.inc"
find "$llvm/compiler-rt/lib/builtins" -maxdepth 1 -regex '.*/fp_mode\.c\|.*t[fi][0-9sd]*[a-z]*[0-9]*\.c' -not -name '*xf*' -not -name '*hf*' |
  compile_each rt clang-19 "${common[@]}" -isystem "$include"
archive "$lib/libclang_rt.builtins.a"

pcre2_and_zlib "$work" clang-19 --target=wasm64-wasi "${wasm_flags[@]}" -w -nostdlibinc -isystem "$include"
rm -rf "$include/c++/v1"
ln -s "$(realpath /usr/include/wasm32-wasi/c++/v1)" "$include/c++/v1"
printf '%s\n' "$made" >"$work/tree/packages"
cd "$LOOM_ROOT"
rm -rf "$to"
mv "$work/tree" "$to"
