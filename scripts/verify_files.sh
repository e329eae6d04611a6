#!/usr/bin/env bash
# Every layer kind in every number type, saved, opened by a fresh process, saved again. Shows what is not the same,
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
