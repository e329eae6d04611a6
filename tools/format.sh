#!/usr/bin/env bash
# Lays out every C++ file with clang-format 14 and the .clang-format of the tree.
#   tools/format.sh                rewrite the files that differ
#   tools/format.sh --check        name them and exit 1
#   tools/format.sh [--check] FILE...   only these
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

mode=write
if [[ "${1:-}" == --check ]]; then mode=check; shift; fi
if [[ "${1:-}" == -h || "${1:-}" == --help ]]; then sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0; fi
formatter="$(command -v clang-format-14)" || {
  echo "error: clang-format-14 is not installed; run scripts/install_deps.sh --tests" >&2
  exit 1
}

files=("$@")
if (( ${#files[@]} == 0 )); then
  cd "$root"
  folders=()
  for folder in src include cli tests fuzz bench examples; do
    [[ -d "$folder" ]] && folders+=("$folder")
  done
  mapfile -t files < <(find "${folders[@]}" -type f \( -name '*.?pp' -o -name '*.h' -o -name '*.inl' \) | sort)
fi

# Many at a time, and one by one where some of them differ.
looks='"$0" --dry-run -Werror "$@" >/dev/null 2>&1 && exit
  for file; do "$0" --dry-run -Werror "$file" >/dev/null 2>&1 || echo "$file"; done'
mapfile -t differing < <(printf '%s\0' "${files[@]}" |
  xargs -0 -n 32 -P "$(nproc 2>/dev/null || echo 1)" bash -c "$looks" "$formatter" | sort)

different=${#differing[@]}
for file in ${differing[@]+"${differing[@]}"}; do
  if [[ "$mode" == check ]]; then
    echo "$file: not laid out by clang-format 14; run tools/format.sh"
  else
    "$formatter" -i "$file"
    echo "$file"
  fi
done
echo "format: ${#files[@]} files, $different $([[ "$mode" == check ]] && echo differ || echo rewritten)"
[[ "$mode" == write || "$different" == 0 ]]
