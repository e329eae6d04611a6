# Sourced by quickstart.sh: builds a target and says how far it is. On a terminal one line is written over;
# elsewhere a line comes every 10 seconds. What the compilers print is kept and shown only if the build fails.
# shellcheck shell=bash

# time_text SECONDS: "42 s", "3 min 05 s".
time_text() {
  if (( $1 < 60 )); then printf '%d s' "$1"; else printf '%d min %02d s' "$(( $1 / 60 ))" "$(( $1 % 60 ))"; fi
}

# progress_text DONE ALL SECONDS: the time left is told once a tenth is done; before, it would be a guess.
progress_text() {
  local text
  text="$1 of $2 steps, $(time_text "$3")"
  if (( $1 * 10 >= $2 )); then text+=", about $(time_text "$(( $3 * ($2 - $1) / $1 ))") left"; fi
  printf '%s' "$text"
}

# show_progress LOG: reads what ninja prints. LOG gets the rest of it.
show_progress() {
  local log="$1" line done=0 all=0 last=-10 status
  SECONDS=0
  while true; do
    status=0
    IFS= read -r -t 1 line || status=$?
    if (( status == 0 )); then
      if [[ "$line" =~ ^@([0-9]+)/([0-9]+)@\ [BL] ]]; then  # Building, Linking
        done="${BASH_REMATCH[1]}" all="${BASH_REMATCH[2]}"
      fi
      printf '%s\n' "$line" >>"$log"
    elif (( status <= 128 )); then
      break  # the end; above 128 a second passed without a line
    fi
    (( all > 0 )) || continue
    if [[ -t 2 ]]; then
      printf '\r\033[K    %s' "$(progress_text "$done" "$all" "$SECONDS")" >&2
    elif (( SECONDS >= last + 10 )); then
      last=$SECONDS
      printf '    %s\n' "$(progress_text "$done" "$all" "$SECONDS")" >&2
    fi
  done
  (( all > 0 )) || return 0
  if [[ -t 2 ]]; then printf '\r\033[K' >&2; fi
  printf '    %s of %s steps, %s\n' "$done" "$all" "$(time_text "$SECONDS")" >&2
}

# build_with_progress LOG PRESET TARGET: fails as the build does.
build_with_progress() {
  NINJA_STATUS='@%f/%t@ ' build "$2" --target "$3" 2>&1 | show_progress "$1"
}
