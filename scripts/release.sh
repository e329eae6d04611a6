#!/usr/bin/env bash
# Makes the files of a release, in build/releases/files. It needs the network only for package registries and the
# sources of Debian. docs/release.md describes the files, and what was run where.
#   scripts/release.sh                       every part, without those of Windows
#   scripts/release.sh --only PART...        these; --list prints the names of the parts
# Two runs of one commit give the same bytes, in any folder. LOOM_MINISIGN_KEY or LOOM_GPG_KEY signs the checksums.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  usage_of "${BASH_SOURCE[0]}" | sed -n '1,/^Two runs/p'
}

parts=(wheel-manylinux-x86_64 wheel-manylinux-aarch64 wheel-musllinux wheel-macos-arm64 wheel-macos-x86_64 sdist
  source npm program program-aarch64 program-musl program-macos deb checksums)
# Windows is not a part of a release yet: docs/release.md.
known=("${parts[@]}" wheel-windows program-windows)
case "${1:-}" in
  "") ;;
  -h|--help) usage; exit 0 ;;
  --list) printf '%s\n' "${known[@]}"; exit 0 ;;
  --only)
    shift
    (( $# > 0 )) || die "--only needs a part; the parts are ${known[*]}"
    parts=("$@")
    for part in "${parts[@]}"; do
      [[ " ${known[*]} " == *" $part "* ]] || die "unknown part '$part'; the parts are ${known[*]}"
    done
    ;;
  *) die "unknown option '$1'; try --help" ;;
esac

version="$(python3 tools/versions.py)"
python3 tools/versions.py --check >&2 || die "the versions differ; run tools/versions.py --write"
python3 tools/notices.py --check >&2 || die "the notices differ; run tools/notices.py --write"
work="$PWD/build/releases" tools="$PWD/build/releases/bin" files="$PWD/build/releases/files"
mkdir -p "$work" "$tools" "$files"
SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || true)}"
[[ -n "$SOURCE_DATE_EPOCH" ]] || die "this is not a git clone; set SOURCE_DATE_EPOCH to the time of the release"
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC ZERO_AR_DATE=1
export ZIG_GLOBAL_CACHE_DIR="$work/cache" ZIG_LOCAL_CACHE_DIR="$work/cache"
umask 022

# shellcheck source=scripts/release_libraries.sh
source scripts/release_libraries.sh
# shellcheck source=scripts/release_files.sh
source scripts/release_files.sh

python="$(python_with "$work/venv" ziglang auditwheel twine scikit-build-core:scikit_build_core \
  zopflipy:zopfli)" || die "$python"
zig="$("$python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')"
for tool in ar ranlib; do
  printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$zig" "$tool" >"$tools/$tool"
  chmod +x "$tools/$tool"
done

for part in "${parts[@]}"; do
  say "== $part"
  "part_${part//-/_}"
done
say "done; the files are in build/releases/files:"
(cd "$files" && wc -c -- * >&2)
