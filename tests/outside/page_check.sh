#!/usr/bin/env bash
# The chat page of `loom serve`: its logic in Node.js (page_logic.mjs), and the page in a browser without a window
# (page_check.mjs). The last line counts. The browser needs Chromium and two packages of npm, which go into build/;
# without them it is skipped.
#   tests/outside/page_check.sh [PRESET] [FOLDER]    with FOLDER: screenshots of the page as well
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=tests/web/common.sh
source "$LOOM_ROOT/tests/web/common.sh"
cd "$LOOM_ROOT"

skip_rest() {
  skip "$1"
  finish
}

have node || skip_rest "Node.js is not installed"
count "its logic" node tests/outside/page_logic.mjs
have chromium || skip_rest "chromium is not installed"
have npm || skip_rest "npm is not installed"
packages="$(page_packages)" || skip_rest "$packages"
count "the chat page" env NODE_PATH="$packages" node tests/outside/page_check.mjs "build/${1:-dev}/cli/loom" "${2:-}"
finish
