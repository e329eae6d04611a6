#!/usr/bin/env bash
# The chat page of `loom serve` in a browser without a window (page_check.mjs). The last line counts. It needs
# Chromium, Node.js and two packages of npm, which go into build/; without them it is skipped.
#   tests/outside/page_check.sh [PRESET] [FOLDER]    with FOLDER: screenshots of the page as well
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=tests/web/common.sh
source "$LOOM_ROOT/tests/web/common.sh"
cd "$LOOM_ROOT"

skip_all() {
  skip "$1"
  finish
}

have chromium || skip_all "chromium is not installed"
have node && have npm || skip_all "Node.js with npm is not installed"
packages="$(page_packages)" || skip_all "$packages"
count "the chat page" env NODE_PATH="$packages" node tests/outside/page_check.mjs "build/${1:-dev}/cli/loom" "${2:-}"
finish
