#!/bin/sh
# Grammars judged by others: texts that random schemas allow by `jsonschema`, masks beside those of
# `llguidance`, the JSON-Schema-Test-Suite (in the source of `jsonschema`), and GBNF beside an
# Earley recogniser of ours. Both packages come from PyPI into the build folder; without a network
# it says so and ends well.
#   tests/outside/grammar_check.sh RUNNER [CASES]     RUNNER: build/dev/tests/grammar_runner
set -eu
runner=$1
cases=${2:-150}
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$root/build/grammar_venv
suite=$root/build/grammar_suite
if ! "$venv/bin/python" -c 'import jsonschema, llguidance' 2> /dev/null; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q jsonschema rfc3339-validator llguidance ||
    { echo 'skipped: jsonschema and llguidance cannot be installed'; exit 0; }
fi
if ! ls "$suite"/*.tar.gz > /dev/null 2>&1; then
  "$venv/bin/pip" download -q --no-deps --no-binary jsonschema -d "$suite" jsonschema ||
    echo 'no test suite: the source of jsonschema cannot be had'
fi
exec "$venv/bin/python" "$root/tests/outside/grammar_check.py" "$runner" "$suite" "$cases"
