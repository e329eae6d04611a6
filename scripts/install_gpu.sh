#!/usr/bin/env bash
# Installs the needs of `--device gpu` into build/gpu: two WebGPU libraries, and the Vulkan loader.
# Continues without unavailable ones, with a message. If all of them exist, it does nothing.
#   scripts/install_gpu.sh           the libraries; a GPU has its own Vulkan driver.
#   scripts/install_gpu.sh --tests   also two drivers that compute on the CPU, for the tests.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# The packages, with their hashes: a package is unpacked only if its hash is right.
dawn_package=bun-webgpu-linux-x64@0.1.7
dawn_integrity=sha512-UEP7UZdEhx9otvkZczjsszL8ZVlrODANQvgl+C88/bNVmxDoFi7w1fWzGi1sZyakiETjmtFDq2/xCLhbSZxjqw==
wgpu_package=wgpu==0.32.0
wgpu_sha256=6499a31b5a29a10b4f1089fea4a0806411f42605fa86b6c0b543a07ca0de8568

to=build/gpu
dawn=$to/dawn/libwebgpu_wrapper.so
wgpu=$to/wgpu/libwgpu_native-release.so

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# The drivers and the loader, if apt exists.
install_packages() {
  local missing=()
  have apt-get && have dpkg-query || {
    say "note: no apt-get here; install a Vulkan driver yourself"
    return
  }
  mapfile -t missing < <(missing_of "$@")
  (( ${#missing[@]} > 0 )) || return 0
  say "installing: ${missing[*]}"
  if ! (apt update && apt install -y --no-install-recommends "${missing[@]}") >"$log" 2>&1; then
    say "note: not installed: ${missing[*]}: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log")"
  fi
}

# note_missing PACKAGE [WHY]: without WHY, the last line of the log.
note_missing() {
  say "note: not fetched: $1: ${2:-$(grep -v '^\s*$' "$log" | tail -n 1)}"
}

# Dawn, from an npm package.
fetch_dawn() {
  local archive
  [[ ! -f "$dawn" ]] || return 0
  have npm || { note_missing "$dawn_package" "npm is not installed"; return; }
  if ! (cd "$work" && npm pack --silent --fetch-retries=1 "$dawn_package") >"$log" 2>&1; then
    note_missing "$dawn_package"
    return
  fi
  archive="$(find "$work" -name '*.tgz')"
  if [[ "$(python3 -c "$integrity" "$archive")" != "$dawn_integrity" ]]; then
    die "$dawn_package is not what it was when this script was written; nothing was unpacked"
  fi
  tar -xzf "$archive" -C "$work"
  mkdir -p "$to/dawn"
  mv "$work"/package/{LICENSE,libwebgpu_wrapper.so} "$to/dawn/"
}

# wgpu-native, from a wheel. pip compares the hash.
fetch_wgpu() {
  [[ ! -f "$wgpu" ]] || return 0
  printf '%s --hash=sha256:%s\n' "$wgpu_package" "$wgpu_sha256" >"$work/wheel.txt"
  if ! python3 -m pip download --quiet --disable-pip-version-check --retries 1 --no-deps \
    --only-binary :all: --python-version 3.11 --platform manylinux_2_28_x86_64 \
    --require-hashes -r "$work/wheel.txt" -d "$work" >"$log" 2>&1; then
    note_missing "$wgpu_package"
    return
  fi
  python3 -m zipfile -e "$work"/wgpu-*.whl "$work"
  mkdir -p "$to/wgpu"
  mv "$work"/wgpu-*.dist-info/licenses "$to/wgpu/" 2>/dev/null || true
  mv "$work/wgpu/resources/libwgpu_native-release.so" "$to/wgpu/"
}

packages=(libvulkan1)
case "${1:-}" in
  "") ;;
  --tests) packages+=(mesa-vulkan-drivers chromium-common) ;;  # lavapipe; SwiftShader
  -h|--help) usage; exit 0 ;;
  *) die "unknown option '$1'; try --tests or --help" ;;
esac

cd "$LOOM_ROOT"
integrity='import base64, hashlib, sys
print("sha512-" + base64.b64encode(hashlib.sha512(open(sys.argv[1], "rb").read()).digest()).decode())'
mkdir -p "$to"
work="$(mktemp -d "$to/fetch.XXXXXX")"
log="$work/log"
trap 'rm -rf "$work"' EXIT

install_packages "${packages[@]}"
if [[ "$(uname -sm)" == "Linux x86_64" ]]; then
  fetch_dawn
  fetch_wgpu
else
  say "note: no library is fetched for $(uname -sm); --device gpu opens any with the functions of webgpu.h"
fi
for library in "$dawn" "$wgpu"; do
  if [[ -f "$library" ]]; then
    printf 'export LOOM_WEBGPU_LIB=%q\n' "$LOOM_ROOT/$library"
    exit 0
  fi
done
say "note: no WebGPU library; --device gpu needs one"
