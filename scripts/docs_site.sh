#!/usr/bin/env bash
# Builds the documents as a site with search, versions and a dark mode: static files in
# build/site-docs/site, for any server. Prints the folder. MkDocs comes from PyPI, into a virtual
# environment of build/site-docs.
#   scripts/docs_site.sh            build, strictly: a warning is an error; then check all links.
#   scripts/docs_site.sh --test     the same, with a line of counts at the end.
#   scripts/docs_site.sh --serve    build, and serve on port 8000 of this machine until Ctrl-C.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

serving=no
testing=no
case "${1:-}" in
  "") ;;
  --serve) serving=yes ;;
  --test) testing=yes ;;
  -h | --help) usage_of "${BASH_SOURCE[0]}"; exit 0 ;;
  *) die "unknown argument '$1'; see scripts/docs_site.sh --help" ;;
esac

work=build/site-docs
python="$work/python/bin/python"
mkdir -p "$work"
if ! cmp -s docs/site/requirements.txt "$work/installed"; then
  rm -rf "$work/python"
  python3 -m venv "$work/python" || die "python3 -m venv failed; install python3-venv"
  "$python" -m pip install --quiet --disable-pip-version-check -r docs/site/requirements.txt ||
    die "MkDocs cannot be installed from PyPI; see the lines above"
  cp docs/site/requirements.txt "$work/installed"
fi
python3 tools/docs_site.py stage "$work/stage" "$work/site"
NO_MKDOCS_2_WARNING=1 "$python" -m mkdocs --quiet build --strict --clean -f "$work/stage/mkdocs.yml" ||
  die "the site has errors; see the lines above"
python3 tools/docs_site.py links "$work/site" >&2
echo "$work/site"
if [[ "$testing" == yes ]]; then echo "1 passed, 0 failed, 0 skipped"; fi
if [[ "$serving" == yes ]]; then
  exec python3 -m http.server --bind 127.0.0.1 --directory "$work/site" 8000
fi
