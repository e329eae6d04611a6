#!/usr/bin/env bash
# Runs the checks that are too long for a change, in parts of 25 minutes at most. The parts are rows of
# bench/nightly/parts.toml. Each run rewrites the row of its part in docs/nightly.md.
#   bench/nightly.sh                  every part.
#   bench/nightly.sh gpu extend       the parts with these names, or names that begin with them and "-".
#   bench/nightly.sh --due [MINUTES]  the parts that ran longest ago, for about this time (300).
#   bench/nightly.sh --list           the parts: about how long each takes, and when it ran last.
# Installs the needs of the tests. $LOOM_FUZZ_SECONDS is the time of each fuzz target, 600 by default.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

case "${1:-}" in
  -h|--help) usage; exit 0 ;;
  --list) ;;
  *) scripts/install_deps.sh --tests >&2 ;;
esac
exec python3 bench/nightly/night.py "$@"
