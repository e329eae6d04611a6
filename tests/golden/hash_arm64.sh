#!/usr/bin/env bash
# The golden hashes on ARM64, which qemu runs as processors without dot products, with FEAT_DotProd and
# with FEAT_I8MM: the logits of each dtype and the training of all layer kinds must be those of
# hashes.txt and training.txt, which hash_matrix.sh writes. Says so in one line where that cannot run.
# usage: tests/golden/hash_arm64.sh
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"
why="$(no_arm64)"
if [[ -n "$why" ]]; then
  echo "hash_arm64: skipped, $why"
  exit 0
fi
golden=tests/golden/hashes.txt
golden_training=tests/golden/training.txt
program=build/arm64/tests/golden/loom_hash
build_arm64 loom_hash

work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# differs WHAT: one run that has other bits.
differs() {
  echo "hash_arm64: $1 differs" | tee -a "$work/differ" >&2
}

# logits CPU ISA DTYPE THREADS CHUNK
logits() {
  local got wanted
  wanted="$(awk -v d="$3" '$1 == d {print $2}' "$golden")"
  got="$(on_arm64 "$1" "$program" verify hash --shape shakespeare --dtype "$3" --prompt-tokens 113 \
    --isa "$2" --threads "$4" --chunk "$5" 2>&1 || true)"
  [[ -n "$wanted" && "$got" == "$wanted" ]] || differs "$3 $2 threads $4 chunk $5: $got"
}

# Of its input the lines of the kinds that training.txt names: all but those that no release has.
named() { awk 'NR == FNR { known[$1]; next } $1 in known' "$golden_training" -; }
# training CPU ISA THREADS
training() {
  on_arm64 "$1" "$program" verify training --isa "$2" --threads "$3" 2>&1 | named |
    cmp -s - "$golden_training" ||
    differs "training $2 threads $3"
}

# best CPU ISA: what a program chooses by itself on that processor.
best() {
  [[ "$(on_arm64 "$1" "$program" isas | tail -n 1)" == "$2" ]] || differs "the best set of $1: not $2"
}

# in_turn RUN: as many at a time as there are cores.
runs=0
in_turn() {
  while (( $(jobs -rp | wc -l) >= $(jobs_to_run) )); do wait -n || true; done
  runs=$((runs + 1))
  "$@" &
}

# Sets with a dot product differ from plain NEON in quantized products alone.
plain="cortex-a53 neon" dotprod="neoverse-n1 dotprod" i8mm="max i8mm"
for set in "$plain" "$dotprod" "$i8mm"; do
  read -r cpu isa <<<"$set"
  in_turn best "$cpu" "$isa"
  in_turn training "$cpu" "$isa" 2
  for dtype in q8_0 q4_0 ternary q4_k q6_k; do
    in_turn logits "$cpu" "$isa" "$dtype" 1 113
    in_turn logits "$cpu" "$isa" "$dtype" 7 64
  done
done
read -r cpu isa <<<"$plain"
for dtype in f32 bf16; do
  in_turn logits "$cpu" "$isa" "$dtype" 1 113
  in_turn logits "$cpu" "$isa" "$dtype" 2 64
  in_turn logits "$cpu" "$isa" "$dtype" 3 7
  in_turn logits "$cpu" "$isa" "$dtype" 7 113
done
wait
touch "$work/differ"
bad="$(wc -l <"$work/differ")"
echo "hash_arm64: $runs runs under qemu, $bad differ (neon, dotprod, i8mm; 1, 2, 3, 7 threads)"
(( bad == 0 ))
