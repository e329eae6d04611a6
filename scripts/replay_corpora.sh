#!/usr/bin/env bash
# Runs every fuzz target once over its corpus, without fuzzing: a crash, a hang or a leak fails.
#   scripts/replay_corpora.sh BUILD      for example build/fuzz
# A target is an executable BUILD/fuzz/fuzz_NAME; its corpus is fuzz/corpus/NAME/.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

[[ $# == 1 && -d "$1" ]] || die "usage: scripts/replay_corpora.sh BUILD (a built fuzz preset)"
build_dir="$(cd "$1" && pwd)"
passed=0
failed=0
skipped=0
log="$(mktemp)"
scratch="$(mktemp -d)"
trap 'rm -rf "$log" "$scratch"' EXIT

for target in "$build_dir"/fuzz/fuzz_*; do
  [[ -f "$target" && -x "$target" ]] || continue
  name="${target##*/fuzz_}"
  corpus="$LOOM_ROOT/fuzz/corpus/$name"
  if [[ ! -d "$corpus" ]]; then
    say "fuzz_$name: skipped, fuzz/corpus/$name is not there"
    skipped=$((skipped + 1))
  elif (cd "$scratch" && "$target" -runs=0 -timeout=10 -rss_limit_mb=2048 "$corpus") >"$log" 2>&1; then
    say "fuzz_$name: ok, $(find "$corpus" -type f | wc -l) inputs"
    passed=$((passed + 1))
  else
    tail -n 30 "$log" >&2
    say "fuzz_$name: FAILED; repeat with: $target -runs=0 $corpus"
    failed=$((failed + 1))
  fi
done
(( passed + failed + skipped > 0 )) || die "no fuzz targets in $build_dir/fuzz; build the fuzz preset first"
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
