#!/usr/bin/env bash
# The chat page of `loom serve` in a browser without a window (page_check.mjs). The last line counts. It needs
# Chromium, Node.js and two packages of npm, which go into build/; without them it is skipped.
#   tests/outside/page_check.sh [PRESET] [FOLDER]    with FOLDER: pictures of the page as well
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

skip_all() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

have chromium || skip_all "chromium is not installed"
have node && have npm || skip_all "Node.js with npm is not installed"
packages=build/page_node
if [[ ! -d "$packages/node_modules/axe-core" ]]; then
  mkdir -p "$packages"
  npm install --silent --no-audit --no-fund --prefix "$packages" playwright-core@1 axe-core@4 >/dev/null 2>&1 ||
    skip_all "playwright-core and axe-core cannot be had from npm"
fi
NODE_PATH="$LOOM_ROOT/$packages/node_modules" exec node tests/outside/page_check.mjs "build/${1:-dev}/cli/loom" "${2:-}"
