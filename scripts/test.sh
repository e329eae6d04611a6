#!/usr/bin/env bash
# Installs the needs of the tests, builds, and runs the checks of tests/checks.toml. The last line sums up.
#   scripts/test.sh                      the checks of every change (.ci/run does this).
#   scripts/test.sh --changed [BASE]     the part that the change since BASE affects. BASE defaults to the last
#                                        commit that is recorded as wholly checked, if there is one.
#   scripts/test.sh --changed --plan     prints these checks, with reasons.
#   scripts/test.sh --quick              build and unit tests only.
#   scripts/test.sh --whole              also the checks that are too long for a change (docs/nightly.md).
#   scripts/test.sh --only NAME...       these checks; --list: their names.
#   scripts/test.sh --preset asan        build and unit tests of another preset of CMakePresets.json.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

usage() {
  usage_of "${BASH_SOURCE[0]}"
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
