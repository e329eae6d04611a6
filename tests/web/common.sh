# Sourced by the checks of WebAssembly and of pages (scripts/wasm_test.sh, scripts/web_site.sh,
# tests/outside/page_check.sh) after scripts/common.sh: counts, samples, and files that several of
# them share.
# shellcheck shell=bash

passed=0 failed=0 skipped=0
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT

# timed FILE COMMAND...: writes the output to FILE, and the times to FILE.time. Returns the status.
# The processor time of Chromium is not included: a browser does not wait for all of its processes.
timed() {
  local file="$1" status=0 TIMEFORMAT='%0R s, %0U + %0S s of processor time'
  shift
  { time "$@" >"$file" 2>&1; } 2>"$file.time" || status=$?
  return "$status"
}

# count NAME COMMAND...: adds the last line of a run, "... N passed, N failed, N skipped", to the
# sums. A run without that line, or with a status that contradicts it, has failed.
count() {
  local name="$1" output="$scratch/output" status=0 last
  shift
  timed "$output" "$@" || status=$?
  last="$(tail -n 1 "$output")"
  if [[ ! "$last" =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    failed=$((failed + 1))
    say "$name ended without a result: $(ending "$status"), $(<"$output.time"); its last lines:"
    tail -n 40 "$output" >&2
    return
  fi
  passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) skipped=$((skipped + BASH_REMATCH[3]))
  say "$name: $last, $(<"$output.time")"
  if (( BASH_REMATCH[3] > 0 )); then grep '^skipped: ' "$output" >&2 || true; fi
  if (( status == 0 && BASH_REMATCH[2] == 0 )); then return; fi
  if (( BASH_REMATCH[2] == 0 )); then failed=$((failed + 1)); fi
  say "$name failed: $(ending "$status"); its last lines:"
  tail -n 40 "$output" >&2
}

# skip WHAT: a part that cannot run here.
skip() {
  say "skipped: $1"
  skipped=$((skipped + 1))
}

# finish: the closing line, and the end of the script.
finish() {
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  (( failed == 0 ))
  exit
}

# sample_seed: the seed of samples: that of the runner, or one from the hash of the repository.
sample_seed() {
  local tree
  if [[ -n "${LOOM_SAMPLE_SEED:-}" ]]; then
    printf '%s' "$LOOM_SAMPLE_SEED"
  elif tree="$(git rev-parse 'HEAD^{tree}' 2>/dev/null)"; then
    printf '%d' "0x${tree:0:12}"
  else
    printf 0
  fi
}

# touches PATTERN: true if a changed file matches the extended regular expression. Unknown changes
# match everything.
touches() {
  [[ ! -f "${LOOM_CHANGED_FILES:-}" ]] || grep -qE "$1" "$LOOM_CHANGED_FILES"
}

# native_results: prints the file with the results of the native library for the suites (native.py),
# or fails without the library.
native_results() {
  local library=build/dev/libloom.so to=build/web/native.json key
  [[ -f "$library" ]] || return
  mkdir -p build/web
  key="$(hash_of "$library" tests/web/native.py bindings/python/loom models/stories.entity examples/data)"
  with_lock native once "$to.stamp" "$key" ask_native "$library" "$to" || return
  printf '%s' "$PWD/$to"
}
ask_native() {
  LOOM_LIBRARY="$PWD/$1" PYTHONPATH=bindings/python python3 tests/web/native.py >"$2"
}

# page_packages: prints the folder of npm's packages that drive a browser. Fails if they are
# unavailable.
page_packages() {
  local folder="$LOOM_ROOT/build/page_node"
  with_lock page_node npm_packages "$folder" playwright-core@1 axe-core@4 || return
  printf '%s' "$folder/node_modules"
}
