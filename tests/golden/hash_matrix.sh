#!/usr/bin/env bash
# The determinism proof: one hash of all logits per dtype, and three of training (forward, backward, 50 steps) per layer
# kind, equal for every instruction set, thread count, prompt split, compiler and optimization level. Builds what is
# missing, compares with hashes.txt and training.txt, prints one line per dtype.
# At the end ARM64, under qemu (hash_arm64.sh).
# usage: tests/golden/hash_matrix.sh [--all | --dev] [--native] [--update] [BUILD_ROOT]
#   --all      every compiler at every level; else g++ -O2, g++ -O1 and clang -O3
#   --dev      g++ -O2 alone, which the dev preset has built
#   --native   without ARM64
#   --update   rewrites the two files; say why in the commit
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
update=no
all=no
only=no
arm64=yes
while [ $# -gt 0 ]; do
  case "$1" in
    --update) update=yes ;;
    --all) all=yes ;;
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
hash_of() { "$@" 2>/dev/null; }
expect() {  # wanted, what, command...
  local wanted=$1 what=$2 got
  shift 2
  got=$(hash_of "$@")
  runs=$((runs + 1))
  if [ "$got" != "$wanted" ]; then
    bad=$((bad + 1))
    echo "hash_matrix: $what gives $got, golden is $wanted" >&2
  fi
}
for dtype in "${dtypes[@]}"; do
  args=(verify hash --shape shakespeare --dtype "$dtype" --prompt-tokens 113)
  wanted=$(awk -v d="$dtype" '$1 == d {print $2}' "$golden" 2>/dev/null || true)
  if [ "$update" = yes ] || [ -z "$wanted" ]; then
    wanted=$(hash_of "$first" "${args[@]}" --isa scalar --threads 1)
    if [ "$update" = no ]; then echo "hash_matrix: no golden hash for $dtype in hashes.txt" >&2; bad=$((bad + 1)); fi
  fi
  new+="$dtype $wanted"$'\n'
  for isa in "${isas[@]}"; do
    for threads in 1 2 3 7; do
      expect "$wanted" "$dtype $isa threads $threads" "$first" "${args[@]}" --isa "$isa" --threads "$threads"
    done
    for chunk in 64 7 1; do
      expect "$wanted" "$dtype $isa chunk $chunk" "$first" "${args[@]}" --isa "$isa" --threads 2 --chunk "$chunk"
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
  local what=$1 program=$2
  shift 2
  runs=$((runs + 1))
  if ! "$program" verify training "$@" 2>/dev/null | named | cmp -s - "$golden_training"; then
    bad=$((bad + 1))
    echo "hash_matrix: training, $what: differs from training.txt" >&2
  fi
}
if [ "$update" = yes ]; then "$first" verify training --isa scalar --threads 1 > "$golden_training"; fi
for isa in "${isas[@]}"; do
  for threads in 1 2 3 7; do training "$isa threads $threads" "$first" --isa "$isa" --threads "$threads"; done
  for variant in "${variants[@]:1}"; do
    read -r name _ <<< "$variant"
    training "$isa $name" "$(loom_of "$name")" --isa "$isa" --threads 2
  done
done
echo "training $(wc -l < "$golden_training") layer kinds, $(cksum < "$golden_training" | cut -d' ' -f1)"
echo "hash_matrix: $runs runs, $bad differ (${isas[*]}; 1, 2, 3, 7 threads; pieces of 113, 64, 7, 1; ${#variants[@]} builds)"
if [ "$arm64" = yes ]; then tests/golden/hash_arm64.sh || bad=$((bad + 1)); fi
[ "$bad" = 0 ]
