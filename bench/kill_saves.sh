#!/bin/sh
# Kills programs while they save, many times: the results in docs/crash-safety.md.
#   bench/kill_saves.sh [KILLS] [BUILD]
# KILLS (1000) of each kind of file, at random moments and at every system call, in a test program;
# and half as many of `loom convert` and of `loom train`. Exit status 1 when a model was lost.
set -eu
kills=${1:-1000}
root=$(cd "$(dirname "$0")/.." && pwd)
build=${2:-$root/build/dev}
LOOM_KILLS=$kills "$build/tests/test_anomaly" --gtest_filter='*SaveKill*' |
  grep -E ' kills, |FAILED|PASSED'
python3 "$root/tests/anomaly/kill_saves.py" "$build/cli/loom" \
  --converts $((kills / 2)) --trainings $((kills / 2))
