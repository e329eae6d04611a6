#!/usr/bin/env bash
# The clients of OpenAI, Anthropic and Ollama, and many clients at once, against `loom serve`.
#   bench/serve.sh [SECONDS]    of load; 60
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/common.sh"
cd "$LOOM_ROOT"

python="$(python_with build/serve_python openai anthropic ollama)"
"$python" bench/serve_clients.py build/dev/cli/loom models/stories.entity
python3 bench/serve_load.py build/dev/cli/loom models/stories.entity --seconds "${1:-60}"
