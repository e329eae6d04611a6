#!/usr/bin/env bash
# The tarball in an app that Vite builds: a project in an empty folder (tests/web/vite_app) installs
# it and is built. Its page passes the package's suite in Chromium. Skips if vite is unavailable.
#   tests/web/vite_app.sh TARBALL NATIVE.json PACKAGES
# NATIVE.json is the output of native.py; PACKAGES is the folder where playwright-core is installed.
set -euo pipefail
tree="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
tarball="$(realpath "$1")" native="$(realpath "$2")" packages="$(realpath "$3")"

app="$(mktemp -d)"
trap 'rm -rf "$app"' EXIT
cp "$tree"/tests/web/vite_app/* "$tree"/tests/web/{page,suite,sample,compat_suite}.mjs "$app/"
cd "$app"
if ! npm install --silent --no-audit --no-fund >npm.log 2>&1; then
  printf 'skipped: vite cannot be had from npm: %s\n' "$(tail -n 1 npm.log)" >&2
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
npm install --silent --no-audit --no-fund "$tarball" >npm.log 2>&1 || {
  cat npm.log >&2
  printf 'the tarball cannot be installed\n0 passed, 1 failed, 0 skipped\n'
  exit 1
}
npm run --silent build >build.log 2>&1 || {
  tail -n 40 build.log >&2
  printf 'the app cannot be built\n0 passed, 1 failed, 0 skipped\n'
  exit 1
}
NODE_PATH="$packages/node_modules" node "$tree/tests/web/browser_test.mjs" --app dist "$native"
