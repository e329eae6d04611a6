#!/usr/bin/env bash
# Tests Loom as WebAssembly: the golden hashes in Node.js, with the arithmetic of every host and with relaxed SIMD,
# and on a host that does not fuse; then the TypeScript package, packed and installed into an empty folder, in
# Node.js and in Chromium, beside the native library, and the site of web/. Builds what is missing; skips what
# cannot be had. The module for GPUs runs over SwiftShader, in Node.js with Dawn and in Chromium.
#   scripts/wasm_test.sh             what every change runs: without addresses of 64 bits, kernels and a Vite app
#   scripts/wasm_test.sh build       builds what that needs
#   scripts/wasm_test.sh --whole     all of it
#   scripts/wasm_test.sh hashes      the golden hashes alone, with those of 64 bits
#   scripts/wasm_test.sh gpu         the module for GPUs alone
#   LOOM_GPU_CASES=all scripts/wasm_test.sh gpu    with every case of every op, which takes hours
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

part=all
whole=no
case "${1:-}" in
  build|gpu) part="$1"; shift ;;
  hashes) part=hashes whole=yes; shift ;;
  --whole) whole=yes; shift ;;
esac
only_help "$@"
hashes=(loom_hash loom_hash_relaxed loom_digits)

passed=0 failed=0 skipped=0
# count NAME COMMAND...: adds the last line of a run, "... N passed, N failed, N skipped", to the sums.
count() {
  local name="$1" output last
  shift
  output="$("$@" 2>&1)" || true
  last="$(tail -n 1 <<<"$output")"
  if [[ "$last" =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
    if (( BASH_REMATCH[2] > 0 )); then printf '%s\n' "$output" >&2; else say "$name: $last"; fi
  else
    failed=$((failed + 1))
    say "$name ended without a result:"
    printf '%s\n' "$output" >&2
  fi
}
finish() {
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  (( failed == 0 ))
  exit
}

why="$(no_wasm)"
[[ -n "$why" ]] || have node || why="Node.js is not installed"
if [[ -n "$why" ]]; then
  say "skipped: $why"
  skipped=1
  finish
fi
node="$(node_with_relaxed)"
# Addresses of 64 bits, where the libraries and a Node.js are there that has them.
golden_hashes_64() {
  local why
  why="$(no_wasm64)"
  [[ -n "$why" ]] || "$node" tests/web/has_memory64.mjs || why="$("$node" --version) of Node.js has no memory64"
  if [[ -n "$why" ]]; then
    say "skipped: golden hashes, memory64: $why"
    skipped=$((skipped + 1))
    return
  fi
  build_wasm64 loom_hash loom_hash_relaxed || die "the build for memory64 failed; see above"
  count "golden hashes, memory64" "$node" tests/web/golden_node.mjs build/wasm64/tests/golden/loom_hash.wasm
  count "golden hashes, memory64 relaxed" "$node" tests/web/golden_node.mjs \
    build/wasm64/bindings/typescript/wasm/loom_hash_relaxed.wasm
}
golden_hashes() {
  build_wasm "${hashes[@]}" || die "the build for WebAssembly failed; see above"
  count "digits" node tests/web/digits_node.mjs build/wasm/bindings/typescript/wasm/loom_digits.wasm
  count "golden hashes" node tests/web/golden_node.mjs build/wasm/tests/golden/loom_hash.wasm
  count "golden hashes by node:wasi" node --no-warnings tests/web/golden_node.mjs --wasi build/wasm/tests/golden/loom_hash.wasm
  if [[ -n "$node" ]]; then
    relaxed=build/wasm/bindings/typescript/wasm/loom_hash_relaxed.wasm
    count "golden hashes, relaxed" "$node" tests/web/golden_node.mjs "$relaxed"
    count "a host that does not fuse" "$node" tests/web/unfused_node.mjs "$relaxed"
    if [[ "$whole" == no ]]; then return; fi
    if build_wasm loom_conformance; then
      count "products beside the reference, relaxed" "$node" tests/web/conformance_node.mjs \
        build/wasm/bindings/typescript/wasm/loom_conformance.wasm '*atmul*:*uantize*'
    else
      say "skipped: the conformance drivers as a module: GoogleTest's sources are not there (Debian: googletest)"
      skipped=$((skipped + 1))
    fi
    golden_hashes_64
  else
    say "skipped: no Node.js here knows relaxed SIMD, and none can be had from npm"
    skipped=$((skipped + 2))
  fi
}
if [[ "$part" == build ]]; then
  build_wasm "${hashes[@]}" && scripts/wasm_package.sh --without-memory64 >/dev/null && exit
  die "the build for WebAssembly failed; see above"
fi
[[ "$part" == gpu ]] || golden_hashes
if [[ "$part" == hashes ]]; then finish; fi

# The package as others get it: packed, and installed into an empty folder.
have npm || { say "skipped: npm is not installed"; skipped=$((skipped + 1)); finish; }
without=()
if [[ "$whole" == no ]]; then without=(--without-memory64); fi
tarball="$(scripts/wasm_package.sh ${without[@]+"${without[@]}"})" || { failed=$((failed + 1)); finish; }
tarball="$PWD/$tarball"
modules=build/web/package/dist/wasm
count "sizes" node tests/web/size_test.mjs whole="$modules/loom.wasm" core="$modules/loom-core.wasm" \
  inference="$modules/loom-inference.wasm" gpu="$modules/loom-gpu.wasm"
empty="$(mktemp -d)"
trap 'rm -rf "$empty"' EXIT
(cd "$empty" && npm init -y && npm install --no-audit --no-fund "$tarball") >"$empty/log" 2>&1 ||
  die "the tarball cannot be installed: $(tail -n 1 "$empty/log")"
cp tests/web/{package.test,suite,compat_suite,node_run,docs_run,gpu_suite,gpu_node,gpu_conformance,gpu_conformance_node,wasi,memory64_test}.mjs "$empty/"
in_node() {
  local library
  count "docs/web.md" node "$empty/docs_run.mjs" "$PWD"
  library="$(ls build/dev/libloom.so 2>/dev/null || true)"
  if [[ -z "$library" ]]; then
    say "skipped: build/dev/libloom.so, which the package is compared with, was not built"
    skipped=$((skipped + 1))
    finish
  fi
  LOOM_LIBRARY="$PWD/$library" PYTHONPATH=bindings/python python3 tests/web/native.py >"$empty/native.json"
  for program in node "$node"; do
    [[ -n "$program" ]] || continue
    count "package in Node.js $("$program" --version)" env LOOM_NATIVE="$empty/native.json" LOOM_TREE="$PWD" \
      "$program" "$empty/node_run.mjs"
    if [[ -f "$modules/loom-memory64.wasm" ]]; then
      count "a model of 4.3 GiB in Node.js $("$program" --version)" "$program" "$empty/memory64_test.mjs" "$empty"
    fi
    if [[ "$program" == "$node" || "$node" == "$(command -v node)" ]]; then break; fi
  done
}
[[ "$part" == gpu ]] || in_node

# The module for GPUs, over a driver that computes on the CPU: in Node.js with Dawn.
swiftshader="$(have dpkg-query && dpkg-query -L chromium-common 2>/dev/null | grep '/vk_swiftshader_icd[^/]*json$' || true)"
if [[ -z "$node" || -z "$swiftshader" ]]; then
  say "skipped: no Node.js with JSPI, or no SwiftShader (Debian: chromium-common), for the GPU in Node.js"
  skipped=$((skipped + 1))
elif ! (cd "$empty" && npm install --silent --no-audit --no-fund webgpu@0.6.2) >/dev/null 2>&1; then
  say "skipped: the package webgpu (Dawn) cannot be had from npm"
  skipped=$((skipped + 1))
else
  on_swiftshader=(env LOOM_TREE="$PWD" VK_ICD_FILENAMES="$swiftshader" XDG_RUNTIME_DIR="$empty" timeout 3600 "$node")
  count "GPU in Node.js" "${on_swiftshader[@]}" "$empty/gpu_node.mjs"
  if [[ "$whole" == no && "$part" != gpu ]]; then
    :  # The kernels over SwiftShader are those that scripts/gpu_test.sh runs there.
  elif build_wasm loom_gpu_conformance; then
    count "conformance on the GPU in Node.js" "${on_swiftshader[@]}" "$empty/gpu_conformance_node.mjs" \
      build/wasm/bindings/typescript/wasm/loom_gpu_conformance.wasm
  else
    say "skipped: the conformance drivers as a module: GoogleTest's sources are not there (Debian: googletest)"
    skipped=$((skipped + 1))
  fi
fi

packages=build/page_node
if ! have chromium; then
  say "skipped: chromium is not installed"
  skipped=$((skipped + 1))
  finish
fi
if [[ ! -d "$packages/node_modules/axe-core" ]]; then
  mkdir -p "$packages"
  npm install --silent --no-audit --no-fund --prefix "$packages" playwright-core@1 axe-core@4 >/dev/null 2>&1 || {
    say "skipped: playwright-core and axe-core cannot be had from npm"
    skipped=$((skipped + 1))
    finish
  }
fi
count "GPU in Chromium" env NODE_PATH="$PWD/$packages/node_modules" timeout 3600 node tests/web/gpu_browser_test.mjs \
  "$empty/node_modules/@loom-engine/loom" build/wasm/bindings/typescript/wasm
if [[ "$part" == gpu ]]; then finish; fi
cp build/wasm/tests/golden/loom_hash.wasm build/wasm/bindings/typescript/wasm/loom_hash_relaxed.wasm "$empty/"
count "package in Chromium" env NODE_PATH="$PWD/$packages/node_modules" node tests/web/browser_test.mjs \
  "$empty/node_modules/@loom-engine/loom" "$empty/native.json" "$empty"
[[ "$whole" == no ]] || count "package in a Vite app" tests/web/vite_app.sh "$tarball" "$empty/native.json" "$packages"
count "the site of web/" scripts/web_site.sh --test ${without[@]+"${without[@]}"}
finish
