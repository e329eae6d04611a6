#!/usr/bin/env bash
# Sourced by release.sh. Compiles the libraries that released files contain, for a target, by the clang of the PyPI
# package ziglang. The sources are those of Debian, with its patches; headers alone come from /usr/include.
# A library is compiled once per target and version.
# shellcheck shell=bash
set -euo pipefail

# shellcheck source=scripts/debian_sources.sh
source "$(dirname "${BASH_SOURCE[0]}")/debian_sources.sh"

# Sources that are compiled, and folders or files of /usr/include with their packages.
compiled_sources=(zlib pcre2 libpng1.6 libjpeg-turbo fmtlib openssl curl ncurses libedit)
header_packages=(nlohmann-json3-dev libxxhash-dev libcli11-dev libboost1.81-dev libflatbuffers-dev)
headers=(nlohmann xxhash.h CLI boost flatbuffers)

# fetch_libraries: the sources, and build/releases/versions: a line per library with its version.
fetch_libraries() {
  local missing
  mapfile -t missing < <(missing_of "${header_packages[@]}" dpkg-dev make patch)
  (( ${#missing[@]} == 0 )) || die "${missing[*]} are not installed; run scripts/install_deps.sh --release"
  if [[ ! -f "$work/debian/complete" ]]; then
    debian_sources "$work/debian" "${compiled_sources[@]}" ||
      die "the sources of ${compiled_sources[*]} cannot be fetched: $(tail -n 1 "$work/debian/log")"
    touch "$work/debian/complete"
  fi
  {
    unpack_sources "$work/debian" "${compiled_sources[@]}" || die "sources cannot be unpacked; see $work/debian/log"
    dpkg-query -W -f='${Package} ${Version}\n' "${header_packages[@]}"
  } | LC_ALL=C sort >"$work/versions"
}

# libraries_of TARGET NAME...: compiles them, into $work/TARGET/libraries.
libraries_of() {
  local target="$1" name key
  shift
  triple="$(triple_of "$target")" tree="$work/$target/libraries" objects="$work/$target/objects"
  # shellcheck disable=SC2207
  flags=(-O2 -g0 -fPIC -w "-ffile-prefix-map=$work=." $(hardening_of "$target"))
  mkdir -p "$tree"/{include,lib,made} "$objects"
  for name in "${headers[@]}"; do ln -sfn "/usr/include/$name" "$tree/include/$name"; done
  for name in "$@"; do
    key="$(grep "^$name " "$work/versions") ${flags[*]} $(type "library_${name//[-.]/_}" | cksum)"
    if [[ -f "$tree/made/$name" && "$(<"$tree/made/$name")" == "$key" ]]; then continue; fi
    build_one "$name"
    printf '%s' "$key" >"$tree/made/$name"
  done
}
# Ends the script if it fails: the shell ignores -e where a caller asks for the status.
build_one() {
  local name="$1"
  say "$target: $name"
  rm -rf "${objects:?}/$name"
  cp -a "$work/debian/unpacked/$name" "$objects/$name"
  (set -e; cd "$objects/$name"; export ACLOCAL=: AUTOCONF=: AUTOMAKE=: AUTOHEADER=: AR="$tools/ar" RANLIB="$tools/ranlib" CC="$zig cc --target=$triple"
    "library_${name//[-.]/_}") >"$work/$target/$name.log" 2>&1
  rm -rf "${objects:?}/$name"
}

# archive NAME FOLDER FLAG... -- FILE...
archive() {
  local name="$1" folder="$2"
  shift 2
  compile_archive "$PWD/$folder" "$tree/lib/lib$name.a" "$zig" cc "--target=$triple" "${flags[@]}" "$@"
}
by_cmake() {
  cmake -S . -B made -G Ninja -DCMAKE_TOOLCHAIN_FILE="$LOOM_ROOT/cmake/zig.cmake" -DLOOM_ZIG="$zig" \
    -DLOOM_ZIG_TARGET="$triple" -DLOOM_ZIG_TOOLS="$tools" -DLOOM_ZIG_ROOT="$tree" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS="${flags[*]}" -DCMAKE_CXX_FLAGS="${flags[*]}" -DCMAKE_INSTALL_PREFIX="$tree" \
    -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF "$@"
  cmake --build made -j "$(jobs_to_run)"
}
by_configure() {
  ./configure --host="$(host_of "$target")" --prefix="$tree" --disable-shared --enable-static CFLAGS="${flags[*]}" \
    CPPFLAGS="-I$tree/include" LDFLAGS="-L$tree/lib" "$@"
}
# host_of TARGET: its name for scripts of autoconf.
host_of() {
  case "$1" in
    *aarch64*|*arm64*) printf 'aarch64-linux-gnu' ;;
    *) printf 'x86_64-linux-gnu' ;;
  esac
}

# zlib and libpng take a compiler that defines TARGET_OS_MAC for one of Mac OS 9.
modern_macos=-fno-define-target-os-macros

library_zlib() {
  local defines=(-DHAVE_UNISTD_H)
  case "$target" in
    *windows*) defines=() ;;
    *macos*) defines+=("$modern_macos") ;;
  esac
  archive z . "${defines[@]}" -- adler32.c crc32.c deflate.c inflate.c inffast.c inftrees.c trees.c zutil.c compress.c \
    uncompr.c gzlib.c gzread.c gzwrite.c gzclose.c
  cp zlib.h zconf.h "$tree/include/"
}
library_pcre2() {
  local parts
  cp src/pcre2.h.generic src/pcre2.h
  cp src/config.h.generic src/config.h
  cp src/pcre2_chartables.c.dist src/pcre2_chartables.c
  mapfile -t parts < <(cd src && ls pcre2_*.c |
    grep -vE '_(jit_test|jit_match|jit_misc|printint|dftables|ucptables|fuzzsupport|maketables)\.c$')
  archive pcre2-8 src -DHAVE_CONFIG_H -DPCRE2_CODE_UNIT_WIDTH=8 -DPCRE2_STATIC -I.. -- "${parts[@]}"
  cp src/pcre2.h "$tree/include/"
}
library_libpng1_6() {
  cp scripts/pnglibconf.h.prebuilt pnglibconf.h
  local defines=(-DPNG_ARM_NEON_OPT=0)
  [[ "$target" != *macos* ]] || defines+=("$modern_macos")
  archive png16 . "-I$tree/include" "${defines[@]}" -- png.c pngerror.c pngget.c pngmem.c pngpread.c pngread.c \
    pngrio.c pngrtran.c pngrutil.c pngset.c pngtrans.c pngwio.c pngwrite.c pngwtran.c pngwutil.c
  cp png.h pngconf.h pnglibconf.h "$tree/include/"
}
library_libjpeg_turbo() {
  by_cmake -DENABLE_SHARED=OFF -DWITH_SIMD=OFF -DWITH_TURBOJPEG=OFF --log-level=NOTICE
  cp made/libjpeg.a "$tree/lib/"
  cp jpeglib.h jmorecfg.h jerror.h made/jconfig.h "$tree/include/"
}
library_fmtlib() {
  by_cmake -DFMT_TEST=OFF -DFMT_DOC=OFF
  cmake --install made
}
# Without modules that are loaded, old protocols, and programs.
library_openssl() {
  local system=linux-x86_64
  case "$target" in
    *windows*) system=mingw64 ;;
    *macos-arm64) system=darwin64-arm64-cc ;;
    *macos*) system=darwin64-x86_64-cc ;;
    *aarch64*) system=linux-aarch64 ;;
  esac
  ./Configure "$system" --prefix="$tree" --libdir=lib --openssldir=/etc/ssl no-shared no-dso no-engine no-tests no-legacy \
    no-comp no-ssl3 no-dtls no-srp no-psk no-cms no-ts no-ocsp no-ct no-gost no-idea no-seed no-camellia no-aria no-bf \
    no-cast no-rc2 no-rc4 no-md4 no-mdc2 no-whirlpool no-sm2 no-sm3 no-sm4 no-uplink no-ui-console no-async \
    "${flags[@]}" CC="$CC" AR="$AR" RANLIB="$RANLIB"
  make -j "$(jobs_to_run)" build_libs
  cp libssl.a libcrypto.a "$tree/lib/"
  cp -r include/openssl "$tree/include/"
}
# HTTP alone, and certificates from where OpenSSL looks (SSL_CERT_FILE, SSL_CERT_DIR, /etc/ssl).
# On macOS it would ask a framework, whose headers ziglang lacks, for the proxies of networks without IPv4.
library_curl() {
  [[ "$target" != macos-* ]] || sed -i '/define CURL_OSX_CALL_COPYPROXIES/d' lib/curl_setup.h
  by_configure --with-openssl="$tree" --with-ca-fallback --without-ca-bundle --without-ca-path --disable-ftp \
    --disable-file --disable-ldap --disable-ldaps --disable-rtsp --disable-dict --disable-telnet --disable-tftp \
    --disable-pop3 --disable-imap --disable-smb --disable-smtp --disable-gopher --disable-mqtt --disable-manual \
    --disable-ntlm --disable-docs --without-brotli --without-zstd --without-libpsl --without-libidn2 \
    --without-nghttp2 --without-librtmp --without-libssh2 --without-gssapi --with-zlib="$tree"
  make -j "$(jobs_to_run)" ACLOCAL=: AUTOCONF=: AUTOMAKE=: AUTOHEADER=: -C lib
  cp lib/.libs/libcurl.a "$tree/lib/"
  cp -r include/curl "$tree/include/"
}
# The part that reads descriptions of terminals, with a few inside.
library_ncurses() {
  by_configure --with-build-cc=cc --with-build-cflags=-O1 --without-cxx --without-cxx-binding --without-ada --without-manpages --without-progs --without-tests \
    --without-debug --disable-stripping --with-termlib --disable-db-install --enable-widec=no --disable-widec \
    --with-default-terminfo-dir=/usr/share/terminfo \
    --with-terminfo-dirs=/etc/terminfo:/lib/terminfo:/usr/share/terminfo:/usr/local/share/terminfo \
    --with-fallbacks=xterm-256color,xterm,screen-256color,tmux-256color,linux,vt100
  make -j "$(jobs_to_run)" ACLOCAL=: AUTOCONF=: AUTOMAKE=: AUTOHEADER=: -C include
  make -j "$(jobs_to_run)" ACLOCAL=: AUTOCONF=: AUTOMAKE=: AUTOHEADER=: -C ncurses ../lib/libtinfo.a
  cp lib/libtinfo.a "$tree/lib/"
  mkdir -p "$tree/include"
  cp include/{curses.h,term.h,termcap.h,unctrl.h,ncurses_dll.h} "$tree/include/"
}
library_libedit() {
  # musl stores ISO 10646 characters too, but its headers do not say so.
  [[ "$target" != musl-* ]] || flags+=(-D__STDC_ISO_10646__=201706L)
  LIBS=-ltinfo by_configure --disable-examples
  make -j "$(jobs_to_run)" ACLOCAL=: AUTOCONF=: AUTOMAKE=: AUTOHEADER=: -C src
  cp src/.libs/libedit.a "$tree/lib/"
  cp src/histedit.h "$tree/include/"
}
