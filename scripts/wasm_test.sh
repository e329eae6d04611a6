#!/usr/bin/env bash
# Tests Loom as WebAssembly, in parts. Builds missing modules. Skips parts whose needs are unavailable.
#   hashes    golden hashes in Node.js and Wasmtime, with the arithmetic of every host and with relaxed SIMD; also on a
#             host that does not fuse.
#   package   the TypeScript package, packed and installed into an empty folder, in Node.js next to the native library.
#             Also sizes.
#   gpu       the module for GPUs over SwiftShader, in Node.js with Dawn and in Chromium.
#   browser   the package and the site of web/ in Chromium.
#   scripts/wasm_test.sh [PART]            these parts, or one. Parts that the change affects run whole. A tenth of the
#                                          rest runs, chosen by LOOM_SAMPLE_SEED.
#   scripts/wasm_test.sh [PART] --whole    everything: also 64-bit addresses, kernels and a Vite app.
#   scripts/wasm_test.sh build             builds the modules of the parts.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=tests/web/common.sh
source "$LOOM_ROOT/tests/web/common.sh"
cd "$LOOM_ROOT"

usage() {
  usage_of "${BASH_SOURCE[0]}"
}

parts=(hashes package gpu browser)
whole=no
case "${1:-}" in
  build|hashes|package|gpu|browser) parts=("$1"); shift ;;
esac
if [[ "${1:-}" == --whole ]]; then whole=yes; shift; fi
only_help "$@"
hashes=(loom_hash loom_hash_relaxed loom_digits)
built=build/wasm/bindings/typescript/wasm
without=()
[[ "$whole" == yes ]] || without=(--without-memory64)

why="$(no_wasm)"
[[ -n "$why" ]] || have node || why="Node.js is not installed"
if [[ -n "$why" ]]; then
  skip "$why"
  finish
fi
node="$(node_with_relaxed)"
seed="$(sample_seed)"

# sample NAME yes|no: makes the next runs whole, or a sample.
sample() {
  if [[ "$2" == yes ]]; then
    export LOOM_WEB_SAMPLE=whole
    say "$1: all cases"
  else
    export LOOM_WEB_SAMPLE="$seed"
    say "$1: a sample; LOOM_SAMPLE_SEED=$seed gives the same one"
  fi
}
# is COMMAND...: yes or no.
is() {
  if "$@"; then printf yes; else printf no; fi
}
# touched PATTERN: true if everything that the pattern represents must run.
touched() {
  [[ "$whole" == yes ]] || touches "$1"
}

# 64-bit addresses, if the libraries and a Node.js with support exist.
golden_hashes_64() {
  local why
  why="$(no_wasm64)"
  [[ -n "$why" ]] || "$node" tests/web/has_memory64.mjs || why="$("$node" --version) of Node.js has no memory64"
  if [[ -n "$why" ]]; then
    skip "golden hashes, memory64: $why"
    return
  fi
  build_wasm64 loom_hash loom_hash_relaxed || die "the build for memory64 failed; see above"
  count "golden hashes, memory64" "$node" tests/web/golden_node.mjs build/wasm64/tests/golden/loom_hash.wasm
  count "golden hashes, memory64 relaxed" "$node" tests/web/golden_node.mjs \
    build/wasm64/bindings/typescript/wasm/loom_hash_relaxed.wasm
}

relaxed_hashes() {
  local relaxed="$built/loom_hash_relaxed.wasm"
  count "golden hashes, relaxed" "$node" tests/web/golden_node.mjs "$relaxed"
  count "a host that does not fuse" "$node" tests/web/unfused_node.mjs "$relaxed"
  if [[ "$whole" == no ]]; then return; fi
  if build_wasm loom_conformance; then
    count "products beside the reference, relaxed" "$node" tests/web/conformance_node.mjs "$built/loom_conformance.wasm" \
      '*atmul*:*uantize*'
  else
    skip "the conformance drivers as a module: GoogleTest's sources are not there (Debian: googletest)"
  fi
  golden_hashes_64
}

part_hashes() {
  local python
  build_wasm "${hashes[@]}" || die "the build for WebAssembly failed; see above"
  count "digits" node tests/web/digits_node.mjs "$built/loom_digits.wasm"
  count "golden hashes" node tests/web/golden_node.mjs build/wasm/tests/golden/loom_hash.wasm
  if python="$(with_lock wasmtime python_with build/web/wasmtime wasmtime)"; then
    count "golden hashes by Wasmtime" node tests/web/golden_node.mjs --wasmtime "$python" build/wasm/tests/golden/loom_hash.wasm
  else
    skip "golden hashes by Wasmtime: $python"
  fi
  if [[ -n "$node" ]]; then
    relaxed_hashes
  else
    skip "relaxed SIMD: no Node.js here knows it, and none can be had from npm"
  fi
}

# need_package PART: the package as users get it: packed, and installed into an empty folder of the
# part. Its tests are next to it, in $folder; it is $package.
need_package() {
  folder="$PWD/build/web/installed/$1" package="$PWD/build/web/installed/$1/node_modules/@loom-engine/loom"
  have npm || { skip "npm is not installed"; return 1; }
  tarball="$(scripts/wasm_package.sh ${without[@]+"${without[@]}"})" || die "the package cannot be built; see above"
  tarball="$PWD/$tarball"
  mkdir -p "$folder"
  once "$folder/stamp" "$(hash_of "$tarball")" install_package ||
    die "the tarball cannot be installed: $(tail -n 1 "$folder/log")"
  cp tests/web/*.mjs "$folder/"
}
install_package() {
  rm -rf "$folder"/{node_modules,packages} "$folder"/package*.json
  (cd "$folder" && npm init -y && npm install --no-audit --no-fund --prefer-offline "$tarball") >"$folder/log" 2>&1
}

# need_native: the results of the native library, in $native.
need_native() {
  native="$(native_results)" || {
    skip "build/dev/libloom.so, which the package is compared with, was not built"
    return 1
  }
}

part_package() {
  local program modules=build/web/package/dist/wasm folder native package tarball
  need_package package || return 0
  sample "package in Node.js" "$(is touched '^(bindings/typescript/|tests/web/|src/capi/|cmake/wasm|scripts/wasm)')"
  count "sizes" node tests/web/size_test.mjs whole="$modules/loom.wasm" core="$modules/loom-core.wasm" \
    inference="$modules/loom-inference.wasm" gpu="$modules/loom-gpu.wasm"
  count "docs/web.md" node "$folder/docs_run.mjs" "$PWD"
  need_native || return 0
  for program in node "$node"; do
    [[ -n "$program" ]] || continue
    count "package in Node.js $("$program" --version)" env LOOM_NATIVE="$native" LOOM_TREE="$PWD" \
      "$program" "$folder/node_run.mjs"
    if [[ -f "$modules/loom-memory64.wasm" ]]; then
      count "a model of 4.3 GiB in Node.js $("$program" --version)" "$program" "$folder/memory64_test.mjs" "$folder"
    fi
    if [[ "$program" == "$node" || "$node" == "$(command -v node)" ]]; then break; fi
  done
}

# Over a driver that computes on the CPU: in Node.js with Dawn.
gpu_in_node() {
  local swiftshader why
  swiftshader="$(have dpkg-query && dpkg-query -L chromium-common 2>/dev/null | grep '/vk_swiftshader_icd[^/]*json$' || true)"
  if [[ -z "$node" || -z "$swiftshader" ]]; then
    skip "no Node.js with JSPI, or no SwiftShader (Debian: chromium-common), for the GPU in Node.js"
    return
  fi
  why="$(npm_packages "$folder" webgpu@0.6.2)" || { skip "$why"; return; }
  local on_swiftshader=(env LOOM_TREE="$PWD" VK_ICD_FILENAMES="$swiftshader" XDG_RUNTIME_DIR="$folder" timeout --foreground 3600 "$node")
  count "GPU in Node.js" "${on_swiftshader[@]}" "$folder/gpu_node.mjs"
  if [[ "$whole" == no ]]; then return; fi  # a change runs the kernels over SwiftShader in scripts/gpu_test.sh
  if build_wasm loom_gpu_conformance; then
    count "conformance on the GPU in Node.js" "${on_swiftshader[@]}" "$folder/gpu_conformance_node.mjs" \
      "$built/loom_gpu_conformance.wasm"
  else
    skip "the conformance drivers as a module: GoogleTest's sources are not there (Debian: googletest)"
  fi
}

# need_browser: Chromium and what drives it, in $packages.
need_browser() {
  have chromium || { skip "chromium is not installed"; return 1; }
  packages="$(page_packages)" || { skip "$packages"; return 1; }
}

part_gpu() {
  local folder package packages tarball drivers=()
  need_package gpu || return 0
  sample "GPU" "$(is touched '^(src/backend/webgpu/|src/api/gpu|bindings/typescript/|tests/web(gpu)?/|cmake/|scripts/wasm)')"
  gpu_in_node
  need_browser || return 0
  # The kernels run there if gpu_in_node built their drivers.
  [[ "$whole" == no ]] || drivers=("$built")
  count "GPU in Chromium" env NODE_PATH="$packages" timeout --foreground 3600 node tests/web/gpu_browser_test.mjs \
    "$package" ${drivers[@]+"${drivers[@]}"}
}

part_browser() {
  local folder native package packages tarball
  need_package browser || return 0
  need_browser || return 0
  need_native || return 0
  build_wasm "${hashes[@]}" || die "the build for WebAssembly failed; see above"
  sample "package in Chromium" "$(is touched '^(bindings/typescript/|tests/web/|src/capi/|cmake/wasm|scripts/wasm)')"
  cp build/wasm/tests/golden/loom_hash.wasm "$built/loom_hash_relaxed.wasm" "$folder/"
  count "package in Chromium" env NODE_PATH="$packages" node tests/web/browser_test.mjs \
    "$package" "$native" "$folder"
  [[ "$whole" == no ]] || count "package in a Vite app" tests/web/vite_app.sh "$tarball" "$native" "$(dirname "$packages")"
  count "the site of web/" scripts/web_site.sh --test ${without[@]+"${without[@]}"}
}

part_build() {
  build_wasm "${hashes[@]}" && scripts/wasm_package.sh ${without[@]+"${without[@]}"} >/dev/null ||
    die "the build for WebAssembly failed; see above"
}

for part in "${parts[@]}"; do "part_$part"; done
finish
