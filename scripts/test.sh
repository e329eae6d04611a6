#!/usr/bin/env bash
# Installs what the tests need, builds, and runs the tests. The last line sums up.
#   scripts/test.sh                  what every change must pass (.ci/run does this)
#   scripts/test.sh --whole          with what takes longer than a change can wait (docs/nightly.md)
#   scripts/test.sh --quick          build and unit tests only
#   scripts/test.sh --preset asan    build and unit tests of another preset of CMakePresets.json
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

preset=dev
quick=no
whole=()
passed=0
failed=0
skipped=0
failures=()
reports=()
log="$(mktemp)"
fetching=
ahead="$(mktemp -d)"
ahead_of=
trap '[[ -z "$ahead_of" ]] || kill "$ahead_of" 2>/dev/null || true; rm -rf "$log" "$log.out" "$log.fetch" "$ahead"' EXIT

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

# logged CMD...: runs CMD, shows what it prints and keeps it in $log; returns its status.
logged() {
  local status
  set +e
  "$@" 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  set -e
  return "$status"
}

# failed_step NAME: keeps what of $log tells why, to be said again at the end, where a long log is still read.
failed_step() {
  failures+=("$1")
  reports+=("$({ grep -E '(^|[^a-z])(FAILED|FAIL|Failure|[Ee]rror|not ok|ended without)([^a-z]|$)' "$log" || true; } |
    tail -n 20 | cut -c 1-300)"$'\n...\n'"$(tail -n 10 "$log" | cut -c 1-300)")
}

# need NAME CMD...: a step that the tests stand on. Silent about counts unless it fails.
need() {
  local start=$SECONDS
  say "== $1"
  if logged "${@:2}"; then
    say "== $1: ok, $((SECONDS - start)) s"
  else
    say "== $1: FAILED, $((SECONDS - start)) s"
    failed=$((failed + 1))
    failed_step "$1"
    return 1
  fi
}

# add_counts: adds the last "N passed, N failed, N skipped" line of $log; returns 1 when there is none.
add_counts() {
  local line words
  line="$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$log" | tail -n 1)"
  [[ -n "$line" ]] || return 1
  read -r -a words <<<"$line"
  passed=$((passed + words[0]))
  failed=$((failed + words[2]))
  skipped=$((skipped + words[4]))
}

# check NAME CMD...: one test, or as many as the last line of CMD counts. A failure is counted, not fatal.
check() {
  local start=$SECONDS status=0 before=$failed verdict=ok
  say "== $1"
  logged "${@:2}" || status=$?
  if ! add_counts && (( status == 0 )); then passed=$((passed + 1)); fi
  if (( status != 0 && failed == before )); then failed=$((failed + 1)); fi
  if (( failed > before )); then
    verdict=FAILED
    failed_step "$1"
  fi
  say "== $1: $verdict, $((SECONDS - start)) s"
}

# Many tests keep one core busy. Beside them, and behind them in the queue of the processor, run the builds that later
# steps need, and checks that are builds before all: `ahead` starts them, `kept` waits for one and tells what came out.
ahead() {
  run_ahead >"$ahead/log" 2>&1 &
  ahead_of=$!
}

run_ahead() {
  local quietly=(nice -n 19)
  keep consumer "${quietly[@]}" tests/consumer/run.py
  keep minimal "${quietly[@]}" tests/consumer/minimal.py
  keep installed "${quietly[@]}" tests/consumer/installed.py "$preset"
  wait_for_file "$ahead/fetched"
  keep arm64 "${quietly[@]}" scripts/arm64_test.sh build
  keep wasm "${quietly[@]}" scripts/wasm_test.sh build
}

# keep FILE CMD...: what CMD prints and its status, for `kept`.
keep() {
  local file="$1" start=$SECONDS status=0
  shift
  "$@" >"$ahead/$file.out" 2>&1 || status=$?
  printf '(%d s, beside others)\n' "$((SECONDS - start))" >"$ahead/$file.time"
  printf '%d\n' "$status" >"$ahead/$file.status"
}

# Ends, too, when this script has, which removes the folder.
wait_for_file() {
  while [[ ! -f "$1" && -d "$(dirname "$1")" ]]; do sleep 1; done
}

# kept FILE: what came out of that CMD, as if it ran now.
kept() {
  while [[ ! -f "$ahead/$1.status" ]] && kill -0 "$ahead_of" 2>/dev/null; do sleep 1; done
  cat "$ahead/$1.time" "$ahead/$1.out" 2>/dev/null
  return "$(cat "$ahead/$1.status" 2>/dev/null || echo 1)"
}

# skip NAME WHY
skip() {
  say "== $1: skipped, $2"
  skipped=$((skipped + 1))
}

configure_and_build() {
  configure "$1" >"$log.out" 2>&1 && build "$1" >>"$log.out" 2>&1 || {
    tail -n 60 "$log.out"
    rm -f "$log.out"
    return 1
  }
  rm -f "$log.out"
}

# The tests that passed are not listed; the last line counts them. Those that need a GPU are skipped,
# even where there is one: the step "gpu" runs them.
unit_tests() {
  local status=0
  env -u LOOM_WEBGPU_LIB ctest --test-dir "build/$preset" -j "$(jobs_to_run)" --output-on-failure --no-tests=error \
    --output-junit ctest.xml |
    { grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .* Passed )' || true; } || status=$?
  python3 tools/ctest_summary.py "build/$preset/ctest.xml" || status=1
  return "$status"
}

# What only later steps need is installed while the first ones build and run.
fetch_more() {
  { scripts/install_deps.sh --tests more && scripts/install_gpu.sh --tests && scripts/install_arm64.sh &&
    scripts/install_wasm64.sh; } >"$log.fetch" 2>&1 &
  fetching=$!
}

wait_for_more() {
  [[ -n "$fetching" ]] || return 0
  wait "$fetching" || true
  fetching=
  grep -v '^export ' "$log.fetch" >&2 || true
}

checks_without_build() {
  check "layering" python3 tools/layering.py
  check "budgets" python3 tools/budgets.py
  check "tools" python3 tests/tools/run.py
}

# Every layer kind in every number type, saved, opened by a fresh process, saved again. Only its last
# line is shown.
verify_files() {
  "build/$preset/cli/loom" verify files --quiet >"$log.out" || {
    grep -v ' same  *same ' "$log.out"
    return 1
  }
  tail -n 1 "$log.out"
}

checks_with_build() {
  check "unit tests" unit_tests
  check "story in README" python3 tests/tools/check_story.py "build/$preset/cli/loom"
  [[ "$quick" == no ]] || return 0
  ahead
  check "commands in the documents" python3 tests/tools/run_blocks.py "build/$preset/cli/loom"
  check "files: every layer kind x 23 number types" verify_files
  wait_for_more
  touch "$ahead/fetched"
  check "Python package" tests/python/run.sh "$preset"
  check "other languages" tests/tongues/run.sh "$preset"
  if have clang-format-14; then
    check "format" tools/format.sh --check
  else
    skip "format" "clang-format-14 is not installed"
  fi
  check "extension patches" tests/extend/run.sh --patches
  checks_beside_others
  check "chat page in a browser" tests/outside/page_check.sh "$preset"
  check "gpu" scripts/gpu_test.sh --preset "$preset" ${whole[@]+"${whole[@]}"}
  # Other compilers build for ARM64 and WebAssembly below; all levels of all of them: bench/nightly.sh hashes.
  check "golden hashes" tests/golden/hash_matrix.sh --dev --native
  check "as a library" kept consumer
  check "inference alone" kept minimal
  check "installed" kept installed
  need "build (arm64)" kept arm64 || true
  check "arm64" scripts/arm64_test.sh ${whole[@]+"${whole[@]}"}
  need "build (wasm)" kept wasm || true
  check "wasm" scripts/wasm_test.sh ${whole[@]+"${whole[@]}"}
  if (( ${#whole[@]} > 0 )); then
    check "fuzz corpora with sanitizers" scripts/fuzz_corpora.sh
    check "sanitizers" scripts/sanitized_test.sh
  fi
}

# What others compute, or say of what we wrote. Each comes from PyPI into build/, and is skipped without it.
checks_beside_others() {
  check "random ONNX graphs" tests/outside/onnx_check.sh "$preset"
  check "random TFLite models" tests/outside/tflite_check.sh "$preset"
  check "jinja2 beside chat templates" tests/outside/template_check.sh "$preset"
  check "scikit-learn beside" tests/outside/sklearn_check.sh "$preset"
  check "absorbed models" tests/outside/absorb_check.sh "$preset"
  check "trained beside PyTorch" tests/outside/torch_networks_check.sh "$preset"
  check "NumPy beside merging" tests/outside/merge_check.sh "$preset"
  check "TensorBoard reads a run" tests/outside/telemetry_check.sh "$preset"
  check "llama.cpp's tests of its server" tests/peer/run.sh "$preset"
  check "schemathesis beside the OpenAPI document" tests/outside/openapi_check.sh "$preset" 5
  check "jsonschema and llguidance beside grammars" tests/outside/grammar_check.sh "build/$preset/tests/grammar_runner" 40
  check "transformers beside encoders" tests/outside/embed_check.sh "$preset"
}

summary() {
  local i
  say ""
  for i in ${failures[@]+"${!failures[@]}"}; do say "failed: ${failures[i]}"$'\n'"${reports[i]}"; done
  say "$((SECONDS / 60)) min $((SECONDS % 60)) s"
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  (( failed == 0 ))
}

while (( $# > 0 )); do
  case "$1" in
    --quick) quick=yes ;;
    --whole) whole=(--whole) ;;
    --preset)
      [[ $# -ge 2 ]] || die "--preset needs a name of CMakePresets.json"
      preset="$2" quick=yes
      shift
      ;;
    -h|--help) usage; exit 0 ;;
    *) die "unknown option '$1'; try --help" ;;
  esac
  shift
done

scripts/install_deps.sh --tests needed
if [[ "$quick" == no ]]; then
  fetch_more
  checks_without_build
fi
if need "build ($preset)" configure_and_build "$preset"; then checks_with_build; fi
wait_for_more
summary
