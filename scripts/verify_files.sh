#!/usr/bin/env bash
# Every layer kind in every number type is saved, opened by a fresh process, and saved again. Shows differences,
# and the last line.
#   scripts/verify_files.sh build/dev/cli/loom
set -euo pipefail
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
"$1" verify files --quiet >"$log" || {
  grep -v ' same  *same ' "$log"
  exit 1
}
tail -n 1 "$log"
