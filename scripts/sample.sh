# Sourced by checks that run a part of their cases for a change: finds the changed files, and draws
# the part. A sample is a function of the repository alone, so a landing runs the cases that its
# check ran.
# shellcheck shell=bash

# sample_seed: the seed of samples: $LOOM_SAMPLE_SEED, else from the hash of the repository, else 0.
sample_seed() {
  local tree
  if [[ -n "${LOOM_SAMPLE_SEED:-}" ]]; then
    printf '%s' "$LOOM_SAMPLE_SEED"
  elif tree="$(git -C "$LOOM_ROOT" rev-parse --quiet --verify 'HEAD^{tree}' 2>/dev/null)"; then
    printf '%d' "$((16#${tree:0:8}))"
  else
    printf '0'
  fi
}

# drawn SEED NAME N: a number from 0 to N - 1.
drawn() {
  local sum
  sum="$(printf '%s %s' "$1" "$2" | cksum)"
  printf '%d' "$((${sum%% *} / 7 % $3))"
}

# changes_to PREFIX...: the changed paths that begin with one of them. Fails if the change is
# unknown.
changes_to() {
  local path prefix
  [[ -f "${LOOM_CHANGED_FILES:-}" ]] || return 1
  while IFS= read -r path || [[ -n "$path" ]]; do
    for prefix in "$@"; do
      if [[ "$path" == "$prefix"* ]]; then printf '%s\n' "$path"; break; fi
    done
  done <"$LOOM_CHANGED_FILES"
}
