#!/usr/bin/env bash
# From a fresh clone to a running language model: installs what is missing, builds, and lets the small
# model models/stories.entity write.
#   scripts/quickstart.sh                          a story that begins "Once upon a time"
#   scripts/quickstart.sh The little fox           a story that begins with your words
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# quiet NAME CMD...: runs CMD, shows what it printed only if it fails.
quiet() {
  local name="$1"
  shift
  "$@" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    die "$name failed; the lines above say why"
  }
}

case "${1:-}" in
  -h|--help) usage; exit 0 ;;
esac
prompt="${*:-Once upon a time}"
model="$LOOM_ROOT/models/stories.entity"
loom="$LOOM_ROOT/build/release/cli/loom"

log="$(mktemp)"
trap 'rm -f "$log"' EXIT

say "1/3 Installing what is missing"
"$LOOM_ROOT/scripts/install_deps.sh"

say "2/3 Building Loom in build/release (the first time takes a few minutes)"
quiet "configuring" configure release
quiet "building" build release

[[ -f "$model" ]] || die "models/stories.entity is missing; is this a complete clone?"
[[ -x "$loom" ]] || die "build/release/cli/loom was not built; run: cmake --build --preset release"

say "3/3 Running: build/release/cli/loom run models/stories.entity -p \"$prompt\" --max-tokens 120"
say ""
cd "$LOOM_ROOT"
"$loom" run models/stories.entity -p "$prompt" --max-tokens 120
