#!/usr/bin/env bash
# Builds the TypeScript package of bindings/typescript: the modules of WebAssembly (install_wasm.sh brings what
# they need), JavaScript and types by the compiler of TypeScript from npm, and a tarball in build/web. Prints its path.
#   scripts/wasm_package.sh
#   scripts/wasm_package.sh --without-memory64    faster, for tests: models to 4 GiB
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

memory64=yes
if [[ "${1:-}" == --without-memory64 ]]; then memory64=no; shift; fi
only_help "$@"
why="$(no_wasm)"
[[ -z "$why" ]] || die "$why"
build_wasm loom_simd loom_relaxed_simd loom_threads loom_relaxed_threads loom_core loom_relaxed_core loom_gpu &&
  build_wasm_inference loom_inference loom_relaxed_inference || die "the build for WebAssembly failed; see above"
why="not asked for"
[[ "$memory64" == no ]] || why="$(no_wasm64)"
if [[ -n "$why" ]]; then
  say "note: the package is made without memory64: $why"
else
  build_wasm64 loom_memory64 loom_memory64_threads || die "the build for memory64 failed; see above"
fi

packages=build/web/packages
if [[ ! -x "$packages/node_modules/.bin/tsc" ]]; then
  mkdir -p "$packages"
  npm install --silent --no-audit --no-fund --prefix "$packages" typescript@5 @types/node@20 >/dev/null 2>&1 ||
    die "typescript cannot be had from npm"
fi
to=build/web/package
rm -rf "$to"
mkdir -p "$to/dist/wasm"
"$packages/node_modules/.bin/tsc" -p bindings/typescript --outDir "$to/dist" --typeRoots "$packages/node_modules/@types"
built=build/wasm/bindings/typescript/wasm
cp "$built/loom_simd.wasm" "$to/dist/wasm/loom.wasm"
cp "$built/loom_relaxed_simd.wasm" "$to/dist/wasm/loom-relaxed.wasm"
cp "$built/loom_threads.wasm" "$to/dist/wasm/loom-threads.wasm"
cp "$built/loom_relaxed_threads.wasm" "$to/dist/wasm/loom-relaxed-threads.wasm"
cp "$built/loom_gpu.wasm" "$to/dist/wasm/loom-gpu.wasm"
cp "$built/loom_core.wasm" "$to/dist/wasm/loom-core.wasm"
cp "$built/loom_relaxed_core.wasm" "$to/dist/wasm/loom-core-relaxed.wasm"
built=build/wasm-inference/bindings/typescript/wasm
cp "$built/loom_inference.wasm" "$to/dist/wasm/loom-inference.wasm"
cp "$built/loom_relaxed_inference.wasm" "$to/dist/wasm/loom-inference-relaxed.wasm"
built=build/wasm64/bindings/typescript/wasm
if [[ -z "$why" ]]; then
  cp "$built/loom_memory64.wasm" "$to/dist/wasm/loom-memory64.wasm"
  cp "$built/loom_memory64_threads.wasm" "$to/dist/wasm/loom-memory64-threads.wasm"
fi
cp bindings/typescript/package.json bindings/typescript/README.md LICENSE "$to/"
(cd "$to" && npm pack --silent --pack-destination .. >/dev/null)
ls build/web/*.tgz
