#!/usr/bin/env bash
# Downloads the libraries that the preset arm64 links, into build/arm64-libraries: Debian's packages for
# ARM64, unpacked there. Nothing is installed, and this machine gets no second architecture.
# install_deps.sh --tests installs the compiler and qemu. If all of it exists, it does nothing.
#   scripts/install_arm64.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(libgtest-dev libgmock-dev libpcre2-dev zlib1g-dev libxxhash-dev nlohmann-json3-dev
  libflatbuffers-dev)

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

only_help "$@"

cd "$LOOM_ROOT"
to=build/arm64-libraries
[[ ! -f "$to/packages" || "$(<"$to/packages")" != "${packages[*]}" ]] || exit 0
have apt-get && have dpkg-deb || {
  say "note: no apt-get here; put ${packages[*]} for ARM64 into $to yourself"
  exit 0
}
mkdir -p build
work="$(mktemp -d "$PWD/build/arm64-fetch.XXXXXX")"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{state/lists/partial,cache/archives/partial,packages,tree}
cd "$work/packages"

# fetch ARGUMENTS: apt-get for ARM64 with separate lists, from the package sources of this machine.
# It needs no rights, so it keeps those of the caller.
fetch() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User="$(id -un)" \
    -o Dir::State="$work/state" -o Dir::State::status=/dev/null -o Dir::Cache="$work/cache" "$@" \
    >>"$work/log" 2>&1
}
if ! (fetch update && fetch download "${packages[@]}"); then
  say "note: not fetched: ${packages[*]} for ARM64: $(grep -m 1 '^E:' "$work/log" || tail -n 1 "$work/log")"
  exit 0
fi
cd "$LOOM_ROOT"
for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/tree"; done
# Programs link the archives, so that they need no library from this folder at run time.
find "$work/tree" -name '*.so' -delete
printf '%s\n' "${packages[*]}" >"$work/tree/packages"
rm -rf "$to"
mv "$work/tree" "$to"
