#!/usr/bin/env bash
# Builds the TypeScript package of bindings/typescript: the modules of WebAssembly (install_wasm.sh installs their
# needs), JavaScript and types by the compiler of TypeScript from npm, and a tarball in build/web. Prints its path.
# Compiles and packs only what changed.
#   scripts/wasm_package.sh
#   scripts/wasm_package.sh --without-memory64    faster, for tests: models to 4 GiB
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

memory64=yes
if [[ "${1:-}" == --without-memory64 ]]; then memory64=no; shift; fi
only_help "$@"
why="$(no_wasm)"
[[ -z "$why" ]] || die "$why"

# Modules by their names in the package, and their targets.
whole=(loom=loom_simd loom-relaxed=loom_relaxed_simd loom-threads=loom_threads loom-relaxed-threads=loom_relaxed_threads
  loom-gpu=loom_gpu loom-core=loom_core loom-core-relaxed=loom_relaxed_core)
inference=(loom-inference=loom_inference loom-inference-relaxed=loom_relaxed_inference)
wide=(loom-memory64=loom_memory64 loom-memory64-threads=loom_memory64_threads)

why="not asked for"
[[ "$memory64" == no ]] || why="$(no_wasm64)"
if [[ -n "$why" ]]; then
  say "note: the package is made without memory64: $why"
  wide=()
fi
build_wasm "${whole[@]#*=}" && build_wasm_inference "${inference[@]#*=}" || die "the build for WebAssembly failed; see above"
(( ${#wide[@]} == 0 )) || build_wasm64 "${wide[@]#*=}" || die "the build for memory64 failed; see above"

packages=build/web/packages
to=build/web/package

# modules PRESET NAME=TARGET...: each as a word, FILE=NAME.
modules() {
  local preset="$1" pair
  shift
  for pair in "$@"; do
    printf 'build/%s/bindings/typescript/wasm/%s.wasm=%s.wasm\n' "$preset" "${pair#*=}" "${pair%%=*}"
  done
}
mapfile -t files < <(
  modules wasm "${whole[@]}"
  modules wasm-inference "${inference[@]}"
  modules wasm64 ${wide[@]+"${wide[@]}"}
)

make_package() {
  local file
  npm_packages "$packages" typescript@5 @types/node@20 || die "typescript cannot be had from npm"
  rm -rf "$to" build/web/*.tgz
  mkdir -p "$to/dist/wasm"
  "$packages/node_modules/.bin/tsc" -p bindings/typescript --outDir "$to/dist" \
    --typeRoots "$packages/node_modules/@types" || die "the package does not compile; see above"
  for file in "${files[@]}"; do cp "${file%%=*}" "$to/dist/wasm/${file#*=}" || return; done
  cp bindings/typescript/package.json bindings/typescript/README.md LICENSE "$to/" &&
    (cd "$to" && npm pack --silent --pack-destination .. >/dev/null)
}

key="$(hash_of "${files[@]%%=*}" bindings/typescript/{src,package.json,tsconfig.json,README.md} LICENSE \
  scripts/wasm_package.sh)"
with_lock package once build/web/package.stamp "$key ${files[*]#*=}" make_package >&2
ls build/web/*.tgz
