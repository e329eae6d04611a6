#!/bin/sh
# Builds and runs one fuzz target, and prints one line for the log in docs/:
#   fuzz/run.sh TARGET EXECUTIONS [SECONDS]
# TARGET: the part of a fuzz_*.cpp of this folder between fuzz_ and .cpp. EXECUTIONS 0 replays the
# corpus.
# New inputs and crashes go to the build folder (build/fuzz, or $LOOM_FUZZ_BUILD); the committed
# corpus is only read. Exit status 1 after a crash, a leak or a hang.
set -eu
target=$1
executions=$2
seconds=${3:-0}
root=$(cd "$(dirname "$0")/.." && pwd)
build=${LOOM_FUZZ_BUILD:-$root/build/fuzz}

case $target in
  safetensors) max_len=4096 ;;
  config_json) max_len=4096 ;;
  data_files) max_len=4096 ;;
  media) max_len=4096 ;;
  tokenizer_json) max_len=8192 ;;
  chat_template) max_len=4096 ;;
  grammar) max_len=2048 ;;
  gguf) max_len=4096 ;;
  onnx|tflite) max_len=8192 ;;
  loom1|universal) max_len=4096 ;;
  network_json) max_len=4096 ;;
  entity|capi_files|absorb) max_len=8192 ;;
  capi_calls) max_len=1024 ;;
  http|donate|pull) max_len=4096 ;;
  *) echo "unknown target: $target" >&2; exit 2 ;;
esac

# Targets of the C interface and of streams depend on everything. If a shared library is built
# already, they run against it, which saves an hour of building. Sanitizers then see the code of the
# target, and what the library passes to the C library. LOOM_FUZZ_WHOLE=1 builds all of it for the
# fuzzer.
made=${LOOM_FUZZ_LIBRARY:-$root/build/dev/libloom.so}
mkdir -p "$build/fuzz"
case $target in
  capi_*|absorb) [ -n "${LOOM_FUZZ_WHOLE:-}" ] || [ ! -f "$made" ] || alone=yes ;;
esac
if [ "${alone:-no}" = yes ]; then
  clang++-14 -std=c++20 -O1 -g1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -I"$root/include" -I"$root/fuzz" -I"$root/src" "$root/fuzz/fuzz_$target.cpp" "$root/src/io/sha256.cpp" -L"$(dirname "$made")" -lloom \
    -Wl,-rpath,"$(dirname "$made")" -o "$build/fuzz/fuzz_$target" > "$build/fuzz_$target.build.log" 2>&1 ||
    { tail -n 30 "$build/fuzz_$target.build.log" >&2; exit 2; }
else
  [ -f "$build/build.ninja" ] || cmake -S "$root" --preset fuzz -B "$build" > /dev/null
  cmake --build "$build" --target "fuzz_$target" -j "$(nproc)" \
    > "$build/fuzz_$target.build.log" 2>&1 ||
    { tail -n 30 "$build/fuzz_$target.build.log" >&2; exit 2; }
fi

case $target in capi_*|absorb|http) rss=1024 ;; *) rss=256 ;; esac  # an engine with all of its sessions
corpus=$build/corpus/$target
mkdir -p "$corpus" "$build/crashes"
log=$build/fuzz_$target.log
status=0
# Ten seconds (machines are shared; an input takes milliseconds) and 64 MB + 16 x the input; AddressSanitizer's own memory (shadow, quarantine) is the
# rest of the 256 MB.
ASAN_OPTIONS=quarantine_size_mb=8:malloc_context_size=4:detect_leaks=1 "$build/fuzz/fuzz_$target" \
  -runs="$executions" -max_total_time="$seconds" -max_len=$max_len -timeout=10 -rss_limit_mb=$rss \
  -dict="$root/fuzz/dict/$target.dict" -artifact_prefix="$build/crashes/$target-" \
  -print_final_stats=1 "$corpus" "$root/fuzz/corpus/$target" > "$log" 2>&1 || status=1

value() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }
coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
result="0 crashes"
[ $status -eq 0 ] || result="FAILED: $(grep -m1 -E 'CHECK|ERROR|SUMMARY' "$log" || echo "see $log")"
echo "$(date +%F) $(git -C "$root" rev-parse --short HEAD 2> /dev/null || echo unknown)" \
  "fuzz_$target: $(value number_of_executed_units) executions, $(value average_exec_per_sec)/s," \
  "coverage ${coverage:-?}, corpus $(find "$corpus" -type f | wc -l)," \
  "peak $(value peak_rss_mb) MB, $result"
exit $status
