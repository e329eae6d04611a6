#!/usr/bin/env bash
# Installs what the tests need, builds, and runs the checks of tests/checks.toml. The last line sums up.
#   scripts/test.sh                      what every change must pass (.ci/run does this)
#   scripts/test.sh --changed [BASE]     of that what the change since BASE reaches; BASE: the last commit that is
#                                        recorded as wholly checked, where there is one
#   scripts/test.sh --changed --plan     says what that would be, and why
#   scripts/test.sh --quick              build and unit tests only
#   scripts/test.sh --whole              with what takes longer than a change can wait (docs/nightly.md)
#   scripts/test.sh --only NAME...       these checks; --list: their names
#   scripts/test.sh --preset asan        build and unit tests of another preset of CMakePresets.json
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

case "${1:-}" in
  -h|--help) usage; exit 0 ;;
  --quick) shift; set -- --only suites "$@" ;;
  --preset)
    [[ $# -ge 2 ]] || die "--preset needs a name of CMakePresets.json"
    set -- --only suites "$@"
    ;;
esac
case " $* " in
  *" --list "*|*" --plan "*) ;;
  *) scripts/install_deps.sh --tests needed ;;
esac
exec python3 tools/check.py "$@"
