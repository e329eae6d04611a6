#!/usr/bin/env bash
# Installs the needs of checks beyond the unit tests, while the build runs: packages of the system, WebGPU libraries,
# libraries for ARM64 and WebAssembly, and one Python environment. It reports unavailable ones once; the checks that
# need them skip.
#   scripts/install_checks.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
only_help "$@"

cd "$LOOM_ROOT"
checks_python >/dev/null &
environment=$!
scripts/install_deps.sh --tests more
for part in "gpu.sh --tests" arm64.sh wasm.sh; do
  # shellcheck disable=SC2086
  scripts/install_$part | { grep -v '^export ' || true; }
done
wait "$environment" || say "note: some packages of tests/requirements.txt cannot be had; their checks will skip"
