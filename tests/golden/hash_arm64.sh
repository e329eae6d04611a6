#!/usr/bin/env bash
# The golden hashes on ARM64, which qemu runs as processors without dot products, with FEAT_DotProd and
# with FEAT_I8MM: the logits of each dtype and the training of all layer kinds must be those of
# hashes.txt and training.txt, which hash_matrix.sh writes. Says so in one line where that cannot run.
# Prints the seconds of each part.
# usage: tests/golden/hash_arm64.sh [--every]
#   --every    each dtype in whole and in pieces on each processor, and training on each; else a sample by
#              $LOOM_SAMPLE_SEED or the hash of the tree: each dtype once on each processor, training on one
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=scripts/sample.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/sample.sh"
cd "$LOOM_ROOT"
every=no
if [[ "${1:-}" == --every ]]; then every=yes; fi
seed="$(sample_seed)"
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

# differs WHAT LOG STATUS: one run that has other bits, or none.
differs() {
  local how="differs"
  (( $3 == 0 )) || how="ended with $(ending "$3"): $(tail -n 3 "$2" | tr '\n' ' ')"
  echo "hash_arm64: $1: $how" | tee -a "$work/differ" >&2
}

# logits CPU ISA DTYPE THREADS CHUNK
logits() {
  local got wanted status=0 log
  log="$(mktemp "$work/XXXXXX")"
  wanted="$(awk -v d="$3" '$1 == d {print $2}' "$golden")"
  got="$(on_arm64 "$1" "$program" verify hash --shape shakespeare --dtype "$3" --prompt-tokens 113 \
    --isa "$2" --threads "$4" --chunk "$5" 2>"$log")" || status=$?
  [[ -n "$wanted" && "$got" == "$wanted" ]] || differs "$3 $2 threads $4 chunk $5 gives '$got'" "$log" "$status"
}

# The lines of its input for the kinds of training.txt, which are the released kinds.
named() { awk 'NR == FNR { known[$1]; next } $1 in known' "$golden_training" -; }
# training CPU ISA THREADS
training() {
  local status=0 log
  log="$(mktemp "$work/XXXXXX")"
  on_arm64 "$1" "$program" verify training --isa "$2" --threads "$3" >"$log.out" 2>"$log" || status=$?
  named <"$log.out" | cmp -s - "$golden_training" || differs "training $2 threads $3" "$log" "$status"
}

# best CPU ISA: what a program chooses by itself on that processor.
best() {
  local got log status=0
  log="$(mktemp "$work/XXXXXX")"
  got="$(on_arm64 "$1" "$program" isas 2>"$log" | tail -n 1)" || status=$?
  [[ "$got" == "$2" ]] || differs "the best set of $1 is '$got', not $2" "$log" "$status"
}

# in_turn RUN: as many at a time as there are cores.
runs=0
in_turn() {
  while (( $(jobs -rp | wc -l) >= $(jobs_to_run) )); do wait -n || true; done
  runs=$((runs + 1))
  "$@" &
}

# has_turn NAME INDEX COUNT: of so many runs of that name one runs for a change.
has_turn() {
  [[ "$every" == yes ]] || (( $(drawn "$seed" "$1" "$3") == $2 ))
}

# Sets with a dot product differ from plain NEON in quantized products alone.
sets=("cortex-a53 neon" "neoverse-n1 dotprod" "max i8mm")
for i in "${!sets[@]}"; do
  read -r cpu isa <<<"${sets[i]}"
  in_turn best "$cpu" "$isa"
  if has_turn training "$i" 3; then in_turn training "$cpu" "$isa" 2; fi
  for dtype in q8_0 q4_0 ternary q4_k q6_k; do
    if has_turn "$isa $dtype" 0 2; then in_turn logits "$cpu" "$isa" "$dtype" 1 113; fi
    if has_turn "$isa $dtype" 1 2; then in_turn logits "$cpu" "$isa" "$dtype" 7 64; fi
  done
done
read -r cpu isa <<<"${sets[0]}"
for dtype in f32 bf16; do
  cuts=("1 113" "2 64" "3 7" "7 113")
  for i in "${!cuts[@]}"; do
    read -r threads chunk <<<"${cuts[i]}"
    if has_turn "$dtype" "$i" 4; then in_turn logits "$cpu" "$isa" "$dtype" "$threads" "$chunk"; fi
  done
done
wait
touch "$work/differ"
bad="$(wc -l <"$work/differ")"
echo "hash_arm64: $runs runs under qemu, $bad differ (neon, dotprod, i8mm; 1, 2, 3, 7 threads)$(
  [[ "$every" == yes ]] || printf '; sample %s of 44 runs' "$seed"), $SECONDS s"
(( bad == 0 ))
