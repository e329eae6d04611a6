#!/usr/bin/env bash
# schemathesis (PyPI) sends a server requests that its OpenAPI document allows, and others that it
# forbids. No answer may be a 500, and no request may lose the connection. The last line counts.
# Skipped without the package.
#   tests/outside/openapi_check.sh [PRESET] [CASES]    CASES: of each operation (default 25)
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}" cases="${2:-25}"
loom="build/$preset/cli/loom"
python="$(checks_python schemathesis)" || {
  say "skipped: $python"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

work="$(mktemp -d)"
exec {said}< <(exec "$loom" serve models/stories.entity --port 0 --quiet --context 128 --defaults '{"n_predict": 8}')
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
# Its first line, or its end.
read -r -t 300 line <&"$said" || die "the server did not start"
address="${line#listening at }"

"$loom" serve --openapi > "$work/openapi.json"
status=0
# Its cache goes into its folder, not into the repository.
env -C "$work" "$python" -m schemathesis.cli run "$work/openapi.json" --url "$address" --checks not_a_server_error \
  --max-examples "$cases" --seed 1 --generation-deterministic --no-color --request-timeout 60 \
  --workers 1 > "$work/report" 2>&1 || status=$?
tail -n 25 "$work/report"
kill -0 "$server" || { say "the server ended"; status=1; }
if (( status == 0 )); then printf '1 passed, 0 failed, 0 skipped\n'; else printf '0 passed, 1 failed, 0 skipped\n'; fi
exit "$status"
