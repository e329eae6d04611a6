#!/usr/bin/env bash
# From a fresh clone to a running language model: installs what is missing, builds a first program, and lets
# the small model models/stories.entity write.
#   scripts/quickstart.sh                          a story that begins "Once upon a time".
#   scripts/quickstart.sh The little fox           a story that begins with your words.
# The first program runs models, chats and describes files. Afterwards cmake --build --preset release builds
# the rest. If dist/ has a release archive, or LOOM_ARCHIVE names one, it is used instead of a build.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  sed -n '2,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# quiet NAME CMD...: runs CMD, and shows its output only if it fails.
quiet() {
  local name="$1"
  shift
  "$@" >"$log" 2>&1 || {
    tail -n 40 "$log" >&2
    die "$name failed; the lines above say why"
  }
}

# archive_here: the release archive of this version for this machine, if there is one.
archive_here() {
  local version
  version="$(sed -n 's/^project(loom VERSION \([0-9.]*\).*/\1/p' "$LOOM_ROOT/CMakeLists.txt")"
  local file="${LOOM_ARCHIVE:-$LOOM_ROOT/dist/loom-$version-$(uname -s)-$(uname -m).tar.gz}"
  if [[ -f "$file" ]]; then
    printf '%s' "$file"
  elif [[ -n "${LOOM_ARCHIVE:-}" ]]; then
    die "LOOM_ARCHIVE names $file, which is not there"
  fi
}

# unpack ARCHIVE: its bin/loom, below one folder or none, becomes $program in build/archive.
unpack() {
  local folder="$LOOM_ROOT/build/archive" found
  rm -rf "$folder"
  mkdir -p "$folder"
  quiet "unpacking $1" tar -xzf "$1" -C "$folder"
  found="$(cd "$folder" && find . -path '*/bin/loom' -type f | head -n 1)"
  [[ -n "$found" ]] || die "$1 has no bin/loom"
  program="build/archive/${found#./}"
}

# build_first: updates the whole program if build/release has it. Otherwise it builds the starter,
# which replaces the whole program until that is linked.
build_first() {
  local starter="$LOOM_ROOT/build/release/starter/loom" target=loom_cli
  quiet "configuring" configure release
  if [[ ! -f "$loom" ]] || cmp -s "$loom" "$starter"; then target=loom_starter; fi
  "$LOOM_ROOT/scripts/build_progress.sh" release "$target"
  if [[ "$target" == loom_starter ]]; then
    cp "$starter" "$loom.new"
    mv "$loom.new" "$loom"
    rest="This program runs models, chats with them (--chat) and tells about files (info).
To train, convert, serve and all else, build the rest, which compiles no file again: cmake --build --preset release"
  fi
}

case "${1:-}" in
  -h|--help) usage; exit 0 ;;
esac
prompt="${*:-Once upon a time}"
model="$LOOM_ROOT/models/stories.entity"
[[ -f "$model" ]] || die "models/stories.entity is missing; is this a complete clone?"
program=build/release/cli/loom
loom="$LOOM_ROOT/$program"
rest=""

log="$(mktemp)"
trap 'rm -f "$log"' EXIT

archive="$(archive_here)"
if [[ -n "$archive" ]]; then
  say "1/3 Installing nothing: ${archive#"$LOOM_ROOT/"} is there"
  say "2/3 Unpacking it in build/archive"
  unpack "$archive"
else
  say "1/3 Installing what is missing"
  "$LOOM_ROOT/scripts/install_deps.sh"
  say "2/3 Building Loom in build/release (the first time takes a few minutes)"
  build_first
fi

say "3/3 Running: $program run models/stories.entity -p \"$prompt\" --max-tokens 120"
say ""
cd "$LOOM_ROOT"
"$program" run models/stories.entity -p "$prompt" --max-tokens 120
if [[ -n "$rest" ]]; then say "$(printf "\n%s" "$rest")"; fi
