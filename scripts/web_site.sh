#!/usr/bin/env bash
# Builds the site of web/ over the TypeScript package as a tarball (wasm_package.sh): static files in build/web/site,
# with a model, the digits and what the native engine computed. Prints the folder.
#   scripts/web_site.sh              build
#   scripts/web_site.sh --test       build, and drive every page in Chromium (skips what cannot be had)
#   scripts/web_site.sh --test --without-memory64    the same with the package as wasm_package.sh makes it so
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

testing=no
how=()
if [[ "${1:-}" == --test ]]; then testing=yes; shift; fi
if [[ "${1:-}" == --without-memory64 ]]; then how=("$1"); shift; fi
only_help "$@"

# skip WHY: a test that cannot run here says so; a build that cannot is an error.
skip() {
  [[ "$testing" == yes ]] || die "$1"
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

why="$(no_wasm)"
[[ -n "$why" ]] || have npm || why="npm is not installed"
[[ -z "$why" ]] || skip "$why"
tarball="$(scripts/wasm_package.sh ${how[@]+"${how[@]}"})" || die "the package cannot be built; see above"

# The tree's own folder stays as it is: what npm installs goes into a copy.
work=build/web/site_work
mkdir -p "$work"
rm -rf "$work/src" "$work/public" "$work/node_modules/@loom-engine"
cp -r web/. "$work/"
mkdir -p "$work/public/models" "$work/public/data"
cp models/stories.entity "$work/public/models/"
cp examples/data/digits.gz examples/data/digits-test.gz examples/data/digit-labels.gz examples/data/digit-labels-test.gz \
  "$work/public/data/"
# The name of the tarball stays, what is in it does not: its hash must not be kept.
rm -f "$work/package-lock.json"
(cd "$work" && npm install --silent --no-audit --no-fund) >"$work/npm.log" 2>&1 ||
  skip "vite and typescript cannot be had from npm: $(tail -n 1 "$work/npm.log")"
(cd "$work" && npm run --silent build) >"$work/build.log" 2>&1 || {
  tail -n 40 "$work/build.log" >&2
  die "the site cannot be built from $tarball"
}
rm -rf build/web/site
mv "$work/dist" build/web/site
if [[ "$testing" == no ]]; then
  printf 'build/web/site\n'
  exit 0
fi

have chromium || skip "chromium is not installed"
packages=build/page_node
if [[ ! -d "$packages/node_modules/axe-core" ]]; then
  mkdir -p "$packages"
  npm install --silent --no-audit --no-fund --prefix "$packages" playwright-core@1 axe-core@4 >/dev/null 2>&1 ||
    skip "playwright-core and axe-core cannot be had from npm"
fi
fresh=""
if [[ -f build/dev/libloom.so ]]; then
  fresh="$PWD/build/web/site_native.json"
  LOOM_LIBRARY="$PWD/build/dev/libloom.so" PYTHONPATH=bindings/python python3 tests/web/native.py --site >"$fresh"
else
  say "note: build/dev/libloom.so was not built, so web/native.json is not compared with it"
fi
NODE_PATH="$PWD/$packages/node_modules" node tests/web/site_test.mjs build/web/site "$fresh"
