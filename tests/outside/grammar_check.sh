#!/usr/bin/env bash
# Compares grammars with other programs. `jsonschema` judges texts that random schemas allow, and
# `llguidance` gives masks. The JSON-Schema-Test-Suite is in the source of `jsonschema`. An Earley
# recogniser of ours judges GBNF. Skipped without the packages. The last line counts.
#   tests/outside/grammar_check.sh RUNNER [CASES]     RUNNER: build/dev/tests/grammar_runner
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

suite=build/grammar_suite
python="$(checks_python jsonschema rfc3339-validator:rfc3339_validator llguidance)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}
if ! ls "$suite"/*.tar.gz >/dev/null 2>&1; then
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary jsonschema -d "$suite" jsonschema ||
    say "no test suite: the source of jsonschema cannot be had"
fi
exec "$python" tests/outside/grammar_check.py "$1" "$suite" "${2:-150}"
