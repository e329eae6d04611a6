#!/usr/bin/env bash
# Configures a preset and builds what checks need: everything, or the program and the test programs that are named, if
# any. Silent unless it fails.
#   scripts/build_checks.sh PRESET all [TARGET...] | [TARGET...]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
preset="$1"
shift
what=(--target "$@")
if [[ "${1:-}" != all ]]; then what+=(loom_cli); fi
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
{ configure "$preset" && build "$preset" "${what[@]}"; } >"$log" 2>&1 || {
  grep -v '^\[[0-9]*/[0-9]*\] \(Building\|Linking\)' "$log" | tail -n 60
  exit 1
}
tail -n 1 "$log"
