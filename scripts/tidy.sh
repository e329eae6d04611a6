#!/usr/bin/env bash
# clang-tidy with the checks of .clang-tidy, three minutes at most; files beyond that are counted as skipped.
#   scripts/tidy.sh            files that changed since this branch left main; on main, since the commit before
#   scripts/tidy.sh FILE...    these files
# Reads build/dev, which has to be configured.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# base_commit: the base of this branch; prints nothing if git knows no history.
base_commit() {
  local main base=
  for main in origin/main main; do
    if base="$(git merge-base HEAD "$main" 2>/dev/null)"; then break; fi
  done
  if [[ -z "$base" || "$base" == "$(git rev-parse HEAD)" ]]; then
    base="$(git rev-parse --verify --quiet HEAD~1 || true)"
  fi
  printf '%s' "$base"
}

# changed: sources of the library and the program that differ, including uncommitted ones.
changed() {
  local base
  base="$(base_commit)"
  [[ -n "$base" ]] || return 0
  {
    git diff --name-only --diff-filter=d "$base" -- 'src/*.cpp' 'cli/*.cpp'
    git ls-files --others --exclude-standard -- 'src/*.cpp' 'cli/*.cpp'
  } | sort -u
}

# look FILE: writes one word, and the findings, into $results/FILE.
look() {
  local left=$((deadline - $(date +%s))) status=0 out="$results/${1//\//_}"
  if (( left <= 0 )); then printf 'skipped\n' >"$out"; return; fi
  timeout "$left" "$tidy" -p build/dev --quiet "$1" >"$out.log" 2>/dev/null || status=$?
  case "$status" in
    0) printf 'passed\n' >"$out" ;;
    124) printf 'skipped\n' >"$out" ;;
    *) { printf 'failed\n'; cat "$out.log"; } >"$out" ;;
  esac
}

case "${1:-}" in
  -h|--help) usage; exit 0 ;;
  -*) die "unknown option '$1'; try --help" ;;
esac
tidy=clang-tidy-14
have "$tidy" || tidy=clang-tidy
if ! have "$tidy"; then
  say "skipped: clang-tidy is not installed"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
[[ -f build/dev/compile_commands.json ]] || die "build/dev is not configured; run cmake --preset dev"

files=("$@")
if (( $# == 0 )); then mapfile -t files < <(changed); fi
results="$(mktemp -d)"
trap 'rm -rf "$results"' EXIT
deadline=$(( $(date +%s) + ${LOOM_TIDY_SECONDS:-180} ))
passed=0 failed=0 skipped=0
for file in ${files[@]+"${files[@]}"}; do
  # Kernels of other processors are not in the list of commands.
  if ! grep -qF "/$file\"" build/dev/compile_commands.json; then continue; fi
  while (( $(jobs -rp | wc -l) >= $(jobs_to_run) )); do wait -n; done
  look "$file" &
done
wait
for file in ${files[@]+"${files[@]}"}; do
  result="$results/${file//\//_}"
  [[ -f "$result" ]] || continue
  case "$(head -n 1 "$result")" in
    passed) passed=$((passed + 1)) ;;
    skipped) skipped=$((skipped + 1)); say "not looked at, no time left: $file" ;;
    *) failed=$((failed + 1)); tail -n +2 "$result" ;;
  esac
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
