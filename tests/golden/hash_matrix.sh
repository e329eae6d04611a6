#!/usr/bin/env bash
# The determinism proof: one hash of all logits per dtype, and three of training (forward, backward,
# 50 steps) per layer kind. They are equal for every instruction set, thread count, prompt split,
# compiler and optimization level. Builds missing programs, compares with hashes.txt and
# training.txt, and prints one line per dtype. Last it runs ARM64, under qemu (hash_arm64.sh).
# usage: tests/golden/hash_matrix.sh [--all | --dev] [--every] [--native] [--update] [BUILD_ROOT]
#   --all      every compiler at every level; else g++ -O2, g++ -O1 and clang -O3. Implies --every
#   --dev      g++ -O2 alone, which the dev preset has built
#   --every    each thread count and prompt split; else a sample by $LOOM_SAMPLE_SEED or the hash of the tree, with
#              each dtype and training once for each instruction set
#   --native   without ARM64
#   --update   rewrites the two files; say why in the commit
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=scripts/common.sh
source "$root/scripts/common.sh"
# shellcheck source=scripts/sample.sh
source "$root/scripts/sample.sh"
update=no
all=no
only=no
every=no
arm64=yes
while [ $# -gt 0 ]; do
  case "$1" in
    --update) update=yes every=yes ;;
    --all) all=yes every=yes ;;
    --every) every=yes ;;
    --dev) only=yes ;;
    --native) arm64=no ;;
    *) break ;;
  esac
  shift
done
builds=${1:-$root/build}
golden=$root/tests/golden/hashes.txt
golden_training=$root/tests/golden/training.txt
cd "$root"

# name, compiler, level, options of CMake. The build at -O1 has no fused multiply-add outside of the kernels for vectors.
variants=("gcc-O2 g++ -O2" "gcc-O1 g++ -O1 -DLOOM_EMULATE_FMA=ON")
clang=no
if command -v clang++-19 >/dev/null; then clang=yes; variants+=("clang19-O3 clang++-19 -O3"); fi
if [ "$only" = yes ]; then variants=("${variants[0]}"); fi
if [ "$all" = yes ]; then
  variants+=("gcc-O3 g++ -O3")
  if [ "$clang" = yes ]; then variants+=("clang19-O1 clang++-19 -O1" "clang19-O2 clang++-19 -O2"); fi
fi
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi

# The dev preset is g++ -O2: when it was built, its program serves as that variant. The others are
# loom_hash: the two verbs without the rest of the program, a tenth of its files.
loom_of() {
  if [ "$1" = gcc-O2 ] && [ -x "$root/build/dev/cli/loom" ]; then
    echo "$root/build/dev/cli/loom"
  else
    echo "$builds/hash-$1/tests/golden/loom_hash"
  fi
}
# level_is FLAG FILE: whether FLAG is the last -O of every command (a build type may bring its own).
level_is() {
  python3 - "$@" << 'EOF'
import json, re, sys
levels = {re.findall(r" (-O\S*)", entry["command"])[-1] for entry in json.load(open(sys.argv[2]))}
sys.exit(levels != {sys.argv[1]})
EOF
}
for variant in "${variants[@]}"; do
  read -r name compiler flag options <<< "$variant"
  case $(loom_of "$name") in "$root/build/dev/"*) continue ;; esac
  cmake -S . -B "$builds/hash-$name" -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_COMPILER="$compiler" \
    -DCMAKE_CXX_FLAGS="$flag" -DLOOM_BUILD_HASH=ON -DLOOM_BUILD_CLI=OFF ${options:+"$options"} -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 -DCMAKE_EXPORT_COMPILE_COMMANDS=ON "${launcher[@]}" >/dev/null
  if ! level_is "$flag" "$builds/hash-$name/compile_commands.json"; then
    echo "hash_matrix: the build $name is not compiled with $flag" >&2
    exit 1
  fi
  cmake --build "$builds/hash-$name" --target loom_hash | tail -n 1
done

first=$(loom_of gcc-O2)
if [ "$(basename "$first")" = loom_hash ]; then
  mapfile -t isas < <("$first" isas)
else
  mapfile -t isas < <("$first" doctor --json | python3 -c 'import json,sys; print("\n".join(json.load(sys.stdin)["isas"]))')
fi
dtypes=(f32 bf16 q8_0 q4_0 ternary q4_k q6_k)
runs=0
bad=0
new=""
log="$(mktemp)"
trap 'rm -f "$log" "$log.out"' EXIT
seed="$(sample_seed)"
offered=0
# has_turn INDEX COUNT OF...: whether run INDEX of COUNT runs for a change. OF are numbers of what it is a run of, so
# that neighbours have different runs.
has_turn() {
  offered=$((offered + 1))
  [ "$every" = yes ] || (( (seed + ${3:-0} + ${4:-0}) % $2 == $1 ))
}
# why STATUS: nothing, or how a run ended that has no result, and its last lines.
why() { [ "$1" = 0 ] || printf ' (ended with %s: %s)' "$(ending "$1")" "$(tail -n 3 "$log" | tr '\n' ' ')"; }
hash_of() { "$@" 2>"$log"; }
expect() {  # wanted, what, command...
  local wanted=$1 what=$2 got status=0
  shift 2
  got=$(hash_of "$@") || status=$?
  runs=$((runs + 1))
  if [ "$got" != "$wanted" ] || [ "$status" != 0 ]; then
    bad=$((bad + 1))
    echo "hash_matrix: $what gives $got, golden is $wanted$(why "$status")" >&2
  fi
}
cuts=("--threads 1" "--threads 2" "--threads 3" "--threads 7" "--threads 2 --chunk 64" "--threads 2 --chunk 7"
  "--threads 2 --chunk 1")
for d in "${!dtypes[@]}"; do
  dtype=${dtypes[d]}
  args=(verify hash --shape shakespeare --dtype "$dtype" --prompt-tokens 113)
  wanted=$(awk -v d="$dtype" '$1 == d {print $2}' "$golden" 2>/dev/null || true)
  if [ "$update" = yes ] || [ -z "$wanted" ]; then
    wanted=$(hash_of "$first" "${args[@]}" --isa scalar --threads 1)
    if [ "$update" = no ]; then echo "hash_matrix: no golden hash for $dtype in hashes.txt" >&2; bad=$((bad + 1)); fi
  fi
  new+="$dtype $wanted"$'\n'
  for i in "${!isas[@]}"; do
    isa=${isas[i]}
    for c in "${!cuts[@]}"; do
      has_turn "$c" "${#cuts[@]}" "$d" "$i" || continue
      read -r -a cut <<< "${cuts[c]}"
      expect "$wanted" "$dtype $isa ${cuts[c]}" "$first" "${args[@]}" --isa "$isa" "${cut[@]}"
    done
    for variant in "${variants[@]:1}"; do
      read -r name _ <<< "$variant"
      expect "$wanted" "$dtype $isa $name" "$(loom_of "$name")" "${args[@]}" --isa "$isa" --threads 2 --chunk 64
    done
  done
  echo "$dtype $wanted"
done
if [ "$update" = yes ]; then printf '%s' "$new" > "$golden"; fi

# Training: all layer kinds in one run; the file holds its output, but for kinds that no release has. That it names all
# the others is for test_learn.
named() { awk 'NR == FNR { known[$1]; next } $1 in known' "$golden_training" -; }
training() {  # what, program, more arguments
  local what=$1 program=$2 status=0
  shift 2
  runs=$((runs + 1))
  "$program" verify training "$@" >"$log.out" 2>"$log" || status=$?
  if [ "$status" != 0 ] || ! named <"$log.out" | cmp -s - "$golden_training"; then
    bad=$((bad + 1))
    echo "hash_matrix: training, $what: differs from training.txt$(why "$status")" >&2
  fi
}
if [ "$update" = yes ]; then "$first" verify training --isa scalar --threads 1 > "$golden_training"; fi
thread_counts=(1 2 3 7)
for i in "${!isas[@]}"; do
  isa=${isas[i]}
  for t in "${!thread_counts[@]}"; do
    has_turn "$t" 4 "$i" || continue
    training "$isa threads ${thread_counts[t]}" "$first" --isa "$isa" --threads "${thread_counts[t]}"
  done
  for variant in "${variants[@]:1}"; do
    read -r name _ <<< "$variant"
    training "$isa $name" "$(loom_of "$name")" --isa "$isa" --threads 2
  done
done
echo "training $(wc -l < "$golden_training") layer kinds, $(cksum < "$golden_training" | cut -d' ' -f1)"
echo "hash_matrix: $runs runs, $bad differ (${isas[*]}; 1, 2, 3, 7 threads; pieces of 113, 64, 7, 1; ${#variants[@]} builds)"
if [ "$every" = no ]; then echo "hash_matrix: sample $seed of $offered runs; --every runs all"; fi
how=()
if [ "$every" = yes ]; then how=(--every); fi
if [ "$arm64" = yes ]; then tests/golden/hash_arm64.sh ${how[@]+"${how[@]}"} || bad=$((bad + 1)); fi
[ "$bad" = 0 ]
