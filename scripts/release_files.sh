#!/usr/bin/env bash
# Sourced by release.sh: a function for each part, and the builds that they share. A target is a system and a
# processor; it is built once, and its library and its program go into several files.
# shellcheck shell=bash
set -euo pipefail

# triple_of TARGET: its name for the compiler. glibc 2.28 and macOS 11 are the oldest that are supported.
triple_of() {
  case "$1" in
    linux-x86_64) printf 'x86_64-linux-gnu.2.28' ;;
    linux-aarch64) printf 'aarch64-linux-gnu.2.28' ;;
    musl-x86_64) printf 'x86_64-linux-musl' ;;
    windows-x86_64) printf 'x86_64-windows-gnu' ;;
    macos-arm64) printf 'aarch64-macos.11.0' ;;
    macos-x86_64) printf 'x86_64-macos.11.0' ;;
    *) die "unknown target '$1'" ;;
  esac
}

# hardening_of TARGET: flags of code that attackers may reach.
hardening_of() {
  case "$1" in
    linux-x86_64|musl-x86_64) printf '%s ' -fstack-protector-strong -D_FORTIFY_SOURCE=2 -fcf-protection=full ;;
    linux-aarch64) printf '%s ' -fstack-protector-strong -D_FORTIFY_SOURCE=2 -mbranch-protection=standard ;;
  esac
}

# program_libraries TARGET: the libraries for the features of its program. A use of other features says that they
# are absent.
program_libraries() {
  case "$1" in
    windows-*) printf '%s ' zlib pcre2 libpng1.6 libjpeg-turbo fmtlib ;;
    macos-*) printf '%s ' zlib pcre2 libpng1.6 libjpeg-turbo fmtlib openssl curl ;;
    *) printf '%s ' zlib pcre2 libpng1.6 libjpeg-turbo fmtlib openssl curl ncurses libedit ;;
  esac
}

# built TARGET CMAKE_TARGET...: configures and builds them, in $work/TARGET/build.
built() {
  local target="$1" tree="$work/$1/libraries" flags how=() last=()
  shift
  flags="-w -ffile-prefix-map=$LOOM_ROOT=. $(hardening_of "$target")"
  fetch_libraries
  # shellcheck disable=SC2046
  libraries_of "$target" $(program_libraries "$target")
  [[ ! -f "$tree/lib/libcurl.a" ]] || last+=("$tree/lib/libcurl.a" "$tree/lib/libssl.a" "$tree/lib/libcrypto.a")
  [[ ! -f "$tree/lib/libtinfo.a" ]] || last+=("$tree/lib/libtinfo.a")
  last+=("$tree/lib/libz.a")
  case "$target" in
    linux-*|musl-*) how+=("-DCMAKE_SHARED_LINKER_FLAGS=-s -Wl,-z,relro,-z,now"
      "-DCMAKE_EXE_LINKER_FLAGS=-s -Wl,-z,relro,-z,now -pie") ;;
    *) how+=("-DCMAKE_SHARED_LINKER_FLAGS=-s" "-DCMAKE_EXE_LINKER_FLAGS=-s") ;;
  esac
  [[ "$target" != windows-* ]] || how+=(-DLOOM_HUB=OFF -DLOOM_EDIT=OFF -DLOOM_SERVE=OFF -DLOOM_DONATE=OFF -DLOOM_TLS=OFF)
  cmake -S . -B "$work/$target/build" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/zig.cmake" -DLOOM_ZIG="$zig" \
    -DLOOM_ZIG_TARGET="$(triple_of "$target")" -DLOOM_ZIG_TOOLS="$tools" -DLOOM_ZIG_ROOT="$tree" \
    -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG -g0" "-DCMAKE_CXX_FLAGS=${flags% }" \
    "-DCMAKE_CXX_STANDARD_LIBRARIES=${last[*]}" -DLOOM_INSTALL=ON -DCMAKE_INSTALL_PREFIX=/usr \
    -DLOOM_EXPORTS="$PWD/bindings/python/exports.map" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DLOOM_MANUALS="$work/$target/manuals" "${how[@]}" >"$work/$target/build.log" 2>&1 ||
    die "$target cannot be configured; see $work/$target/build.log"
  nice cmake --build "$work/$target/build" -j "$(jobs_to_run)" --target "$@" >>"$work/$target/build.log" 2>&1 ||
    die "$target does not build; see $work/$target/build.log"
}

# wheel TARGET TAG FILE NAME: the library FILE of the build of TARGET as a wheel, with NAME inside.
wheel() {
  local target="$1" tag="$2" file="$3" name="$4" base
  built "$target" loom_shared
  file="$(find "$work/$target/build" -maxdepth 1 -name "$file" | sort | head -n 1)"
  [[ -f "$file" ]] || die "the build of $target has no library $3"
  rm -rf "$work/$target/wheel"
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps -w "$work/$target/wheel" \
    bindings/python -C "cmake.define.LOOM_LIBRARY=$file" -C cmake.define.CMAKE_STRIP= >&2
  base="$(find "$work/$target/wheel" -name '*.whl')"
  "$python" bindings/python/repack.py "$base" --library "$file=loom/$name" --tag "$tag" --to "$files"
  base="$files/$(basename "$base" | sed "s/-py3-none-.*/-py3-none-$tag.whl/")"
  "$python" -m twine check --strict "$base" >&2
  sbom "$base" library
}
# audited WHEEL_PATTERN TAG: fails unless auditwheel agrees with the tag.
audited() {
  local wheel said
  wheel="$(find "$files" -name "$1")"
  said="$("$python" -m auditwheel show "$wheel" | tr '\n' ' ')"
  [[ "$said" == *"$2"* ]] || die "auditwheel does not call $wheel $2: $said"
}
part_wheel_manylinux_x86_64() {
  wheel linux-x86_64 manylinux_2_28_x86_64 'libloom.so.*.*.*' libloom.so
  audited '*manylinux*x86_64.whl' manylinux_2_28
}
part_wheel_manylinux_aarch64() {
  wheel linux-aarch64 manylinux_2_28_aarch64 'libloom.so.*.*.*' libloom.so
  audited '*manylinux*aarch64.whl' manylinux_2_28
}
part_wheel_musllinux() {
  wheel musl-x86_64 musllinux_1_2_x86_64 'libloom.so.*.*.*' libloom.so
}
part_wheel_windows() {
  wheel windows-x86_64 win_amd64 '*loom.dll' loom.dll
}
part_wheel_macos_arm64() {
  wheel macos-arm64 macosx_11_0_arm64 'libloom.*.*.*.dylib' libloom.dylib
}
part_wheel_macos_x86_64() {
  wheel macos-x86_64 macosx_11_0_x86_64 'libloom.*.*.*.dylib' libloom.dylib
}

# The source of the wheel: the library and the package in one folder, which pip builds with a compiler.
part_sdist() {
  local stage="$work/sdist/loom_engine-$version"
  rm -rf "$work/sdist"
  mkdir -p "$stage"
  # shellcheck disable=SC2046
  git archive HEAD CMakeLists.txt LICENSE cmake src include bindings/python api cli/CMakeLists.txt |
    tar -x -C "$stage"
  python3 tools/sdist.py "$stage"
  (cd "$stage" && "$python" -c 'import sys; from scikit_build_core.build import build_sdist
build_sdist(sys.argv[1])' "$files") >"$work/sdist/log" 2>&1 || die "no sdist; see $work/sdist/log"
  "$python" -m twine check --strict "$files/loom_engine-$version.tar.gz" >&2
}

# The sources of the commit, and the formula of Homebrew for them.
part_source() {
  local archive="loom-$version.tar.gz"
  git archive --format=tar --prefix="loom-$version/" HEAD | gzip -9n >"$files/$archive"
  sed "s|@SHA256@|$(sha256sum <"$files/$archive" | cut -d ' ' -f 1)|; s|@RELEASES@|${LOOM_RELEASES:-@RELEASES@}|" \
    packaging/homebrew/loom.rb >"$files/loom.rb"
}

part_npm() {
  local made
  made="$(scripts/wasm_package.sh | tail -n 1)"
  cp "$made" "$files/"
  RUNTIMES="llvm-$(dpkg-query -W -f='${Version}' libc++-19-dev-wasm32)" sbom "$files/$(basename "$made")" library
}

# packed TARGET FOLDER: the folder of $work/TARGET as an archive with equal bytes for equal contents.
packed() {
  tar -C "$work/$1" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar \
    -cf - "$2" | gzip -9n >"$files/$2.tar.gz"
}
# program TARGET NAME [KIND...]: the program of TARGET with its model and its notices.
program() {
  local target="$1" name="loom-$version-$2" to="$work/$1/loom-$version-$2" file
  shift 2
  built "$target" loom_cli
  rm -rf "$to"
  mkdir -p "$to/models" "$to/examples"
  for file in loom loom.exe; do
    [[ ! -f "$work/$target/build/cli/$file" ]] || cp "$work/$target/build/cli/$file" "$to/"
  done
  cp LICENSE packaging/NOTICE packaging/README.md "$to/"
  cp models/stories.entity "$to/models/"
  cp examples/data/{fruit.csv,paths.csv} "$to/examples/"
  manuals "$to"
  find "$to" -type f -exec chmod 644 {} + && chmod 755 "$to"/loom*
  packed "$target" "$name"
  sbom "$files/$name.tar.gz" program "$@"
}
# manuals FOLDER: man pages and completions, if the program that runs here writes them.
manuals() {
  local program="$work/linux-x86_64/build/cli/loom" shell verb
  [[ -x "$program" ]] && "$program" completion bash >/dev/null 2>&1 || return 0
  mkdir -p "$1/completions" "$1/man"
  for shell in bash zsh fish; do "$program" completion "$shell" >"$1/completions/loom.$shell"; done
  "$program" help --man >"$1/man/loom.1"
  for verb in $("$program" help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p'); do
    "$program" help --man "$verb" >"$1/man/loom-$verb.1"
  done
  gzip -9n "$1"/man/*.1
}
# links_only PROGRAM PATTERN: fails if it needs another library at its start.
links_only() {
  local needed
  needed="$(readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE "$2" || true)"
  [[ -z "$needed" ]] || die "$1 needs $(tr '\n' ' ' <<<"$needed")at its start"
}
part_program() {
  program linux-x86_64 linux-x86_64
  links_only "$work/linux-x86_64/build/cli/loom" '^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so'
}
part_program_aarch64() {
  program linux-aarch64 linux-aarch64
  links_only "$work/linux-aarch64/build/cli/loom" '^(libc|libm|libdl|libpthread|librt|ld-linux.*)\.so'
}
part_program_musl() {
  program musl-x86_64 linux-x86_64-static musl
  links_only "$work/musl-x86_64/build/cli/loom" '^$'
}
part_program_windows() {
  program windows-x86_64 windows-x86_64 windows
}
part_program_macos() {
  program macos-arm64 macos-arm64
  program macos-x86_64 macos-x86_64
}

# deb: the program with its manual, by cpack.
part_deb() {
  local build="$work/linux-x86_64/build" to="$work/linux-x86_64/manuals"
  built linux-x86_64 loom_cli
  rm -rf "$to" "$build"/*.deb
  mkdir -p "$to"
  manuals "$to"
  (cd "$build" && cpack -G DEB >"$work/linux-x86_64/cpack.log" 2>&1) ||
    die "cpack failed; see $work/linux-x86_64/cpack.log"
  cp "$build"/loom_*.deb "$files/"
}

# sbom FILE KIND...: the list of packages in it, beside it. RUNTIMES is the version of the C and C++ libraries.
sbom() {
  local file="$1" from_ziglang
  shift
  [[ -f "$work/versions" ]] || fetch_libraries
  from_ziglang="ziglang-$("$python" -c 'from importlib.metadata import version; print(version("ziglang"))')"
  { cat "$work/versions" && printf 'runtimes %s\n' "${RUNTIMES:-$from_ziglang}"; } >"$work/versions.all"
  python3 tools/notices.py --sbom "$@" --versions "$work/versions.all" --file "$file" >"$file.spdx.json"
}

part_checksums() {
  (cd "$files" && rm -f SHA256SUMS* && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
  if [[ -n "${LOOM_MINISIGN_KEY:-}" ]] && have minisign; then
    minisign -S -s "$LOOM_MINISIGN_KEY" -m "$files/SHA256SUMS" -t "loom $version"
  elif [[ -n "${LOOM_GPG_KEY:-}" ]] && have gpg; then
    gpg --batch --yes --local-user "$LOOM_GPG_KEY" --armor --detach-sign "$files/SHA256SUMS"
  else
    say "note: the checksums are not signed; LOOM_MINISIGN_KEY or LOOM_GPG_KEY names a key"
  fi
}
