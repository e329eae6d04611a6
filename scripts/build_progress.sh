#!/usr/bin/env bash
# Builds a target of a configured preset and shows the progress. A terminal gets one line that is overwritten;
# otherwise a line comes every 10 seconds. If the build fails, the output of the compiler is shown.
#   scripts/build_progress.sh PRESET TARGET
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

usage() {
  sed -n '2,4s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# time_text SECONDS: "42 s", "3 min 05 s".
time_text() {
  if (( $1 < 60 )); then printf '%d s' "$1"; else printf '%d min %02d s' "$(( $1 / 60 ))" "$(( $1 % 60 ))"; fi
}

# progress_text DONE ALL SECONDS: shows the remaining time once a tenth is done; before, it would be
# a guess.
progress_text() {
  local text
  text="$1 of $2 steps, $(time_text "$3")"
  if (( $1 * 10 >= $2 && $1 < $2 )); then text+=", about $(time_text "$(( $3 * ($2 - $1) / $1 ))") left"; fi
  printf '%s' "$text"
}

# show DONE ALL: at most a line in 10 seconds if this is not a terminal.
show() {
  if [[ -t 2 ]]; then
    printf '\r\033[K    %s' "$(progress_text "$1" "$2" "$SECONDS")" >&2
  elif (( SECONDS >= shown + 10 )); then
    shown=$SECONDS
    say "    $(progress_text "$1" "$2" "$SECONDS")"
  fi
}

# follow: shows what ninja prints as progress and keeps it in $log. Steps that look for new files do not count.
follow() {
  local line finished=0 steps=0 status
  while true; do
    status=0
    IFS= read -r -t 1 line || status=$?
    if (( status == 0 )); then
      printf '%s\n' "$line" >>"$log"
      if [[ "$line" =~ ^@([0-9]+)/([0-9]+)@\ [BL] ]]; then  # Building, Linking
        finished="${BASH_REMATCH[1]}" steps="${BASH_REMATCH[2]}"
      fi
    elif (( status <= 128 )); then
      break  # the end; above 128 a second passed without a line
    fi
    if (( steps > 0 )); then show "$finished" "$steps"; fi
  done
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  if (( steps > 0 )); then say "    $finished of $steps steps, $(time_text "$SECONDS")"; fi
}

case "${1:-}" in
  -h|--help) usage; exit 0 ;;
esac
(( $# == 2 )) || die "a preset and a target have to follow; try --help"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
SECONDS=0
shown=-10
NINJA_STATUS='@%f/%t@ ' build "$1" --target "$2" 2>&1 | follow || {
  # Lines of successful steps are not shown.
  grep -v '^@' "$log" | head -n 60 >&2 || true
  die "building $2 failed; the lines above say why"
}
