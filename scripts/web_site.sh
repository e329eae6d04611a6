#!/usr/bin/env bash
# Builds the site of web/ over the TypeScript package as a tarball (wasm_package.sh): static files in build/web/site,
# with a model, the digits and results of the native engine. Prints the folder. Builds only what changed.
#   scripts/web_site.sh              build.
#   scripts/web_site.sh --test       build, and drive every page in Chromium (skips if it is unavailable).
#   scripts/web_site.sh --test --without-memory64    the same without the memory64 module of the package.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tests/web/common.sh
source "$LOOM_ROOT/tests/web/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

testing=no
how=()
if [[ "${1:-}" == --test ]]; then testing=yes; shift; fi
if [[ "${1:-}" == --without-memory64 ]]; then how=("$1"); shift; fi
only_help "$@"

# absent WHY: a test that cannot run here reports it; a build that cannot is an error.
absent() {
  [[ "$testing" == yes ]] || die "$1"
  skip "$1"
  finish
}

why="$(no_wasm)"
[[ -n "$why" ]] || have npm || why="npm is not installed"
[[ -z "$why" ]] || absent "$why"
tarball="$(scripts/wasm_package.sh ${how[@]+"${how[@]}"})" || die "the package cannot be built; see above"

# The folder web/ stays unchanged: npm installs into a copy.
work=build/web/site_work
mkdir -p "$work"
data=(examples/data/{digits,digits-test,digit-labels,digit-labels-test}.gz)

# The name of the tarball stays and its contents do not, so its hash must not be kept.
install_site() {
  rm -rf "$work/node_modules/@loom-engine" "$work/package-lock.json"
  cp web/package.json "$work/" &&
    (cd "$work" && npm install --silent --no-audit --no-fund --prefer-offline) >"$work/npm.log" 2>&1
}

build_site() {
  rm -rf "$work/src" "$work/public" build/web/site
  mkdir -p "$work/public/models" "$work/public/data"
  cp -r web/. "$work/" && cp models/stories.entity "$work/public/models/" && cp "${data[@]}" "$work/public/data/" &&
    (cd "$work" && npm run --silent build) >"$work/build.log" 2>&1 && mv "$work/dist" build/web/site
}

with_lock site_work once "$work/installed" "$(hash_of "$tarball" web/package.json)" install_site ||
  absent "vite and typescript cannot be had from npm: $(tail -n 1 "$work/npm.log")"
with_lock site_work once "$work/built" "$(hash_of "$tarball" web models/stories.entity "${data[@]}")" build_site || {
  tail -n 40 "$work/build.log" >&2
  die "the site cannot be built from $tarball"
}
if [[ "$testing" == no ]]; then
  printf 'build/web/site\n'
  exit 0
fi

have chromium || absent "chromium is not installed"
packages="$(page_packages)" || absent "$packages"
native="$(native_results)" || say "note: build/dev/libloom.so was not built, so web/native.json is not compared with it"
count "the site of web/" env NODE_PATH="$packages" node tests/web/site_test.mjs build/web/site "$native"
finish
