#!/usr/bin/env bash
# Tests --device gpu without a GPU: two WebGPU libraries over two Vulkan drivers that compute on the
# CPU, in parallel. Installs missing packages (install_gpu.sh). Skips parts whose needs are unavailable.
#   scripts/gpu_test.sh                 with the programs of build/dev: tests of the change, and a sample of the rest.
#   scripts/gpu_test.sh --whole         all of the tests over both.
#   scripts/gpu_test.sh --preset asan   with another build folder.
#   scripts/gpu_test.sh --every-case    only the conformance tests, every case of every op, over lavapipe.
#   LOOM_GPU_CASES=all scripts/gpu_test.sh   every case: minutes over lavapipe, hours over SwiftShader.
# The change: $LOOM_CHANGED_FILES names a file with its paths; without it the change is everything. The sample:
# $LOOM_SAMPLE_SEED, by default the hash of the repository. tests/webgpu/touched.py maps files to tests.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
# shellcheck source=scripts/sample.sh
source "$(dirname "${BASH_SOURCE[0]}")/sample.sh"
cd "$LOOM_ROOT"

usage() {
  usage_of "${BASH_SOURCE[0]}"
}

preset=dev
every_case=no
whole=no
while (( $# > 0 )); do
  case "$1" in
    --preset)
      [[ $# -ge 2 ]] || die "--preset needs a name of CMakePresets.json"
      preset="$2"
      shift
      ;;
    --every-case) every_case=yes ;;
    --whole) whole=yes ;;
    -h|--help) usage; exit 0 ;;
    *) die "unknown option '$1'; try --help" ;;
  esac
  shift
done

logs=build/gpu/logs
rm -rf "$logs"
mkdir -p "$logs"
scripts/install_gpu.sh --tests >/dev/null

# icd_of PACKAGE NAME: the file of a Debian package that registers a driver with the Vulkan loader.
icd_of() {
  have dpkg-query && dpkg-query -L "$1" 2>/dev/null | grep "/$2[^/]*json\$" || true
}

# program NAME LIBRARY DRIVER RUN [VARIABLE=VALUE...]: one test program; $logs/RUN.xml has its
# results. The limit ends a program that hangs; no test waits that long.
program() {
  local start=$SECONDS
  env LOOM_WEBGPU_LIB="$PWD/$2" VK_ICD_FILENAMES="$3" XDG_RUNTIME_DIR="$PWD/$logs" LOOM_GPU_TOUCHED="$touched" \
    LOOM_SAMPLE_SEED="$seed" "${@:5}" timeout 7200 "build/$preset/tests/$1" --gtest_output="xml:$logs/$4.xml" \
    >"$logs/$4.log" 2>&1 || printf '\nended with %d\n' "$?" >>"$logs/$4.log"
  printf '%d s%s\n' "$((SECONDS - start))" "$(sed -n 's/^sample [0-9]*:/;/p' "$logs/$4.log")" >"$logs/$4.time"
}

dawn=build/gpu/dawn/libwebgpu_wrapper.so
wgpu=build/gpu/wgpu/libwgpu_native-release.so
swiftshader="$(icd_of chromium-common vk_swiftshader_icd)"
lavapipe="$(icd_of mesa-vulkan-drivers lvp_icd)"
runs=()
skipped=0

# in_turn ARGUMENTS: program ARGUMENTS, two at a time.
in_turn() {
  runs+=("$4")
  while (( $(jobs -rp | wc -l) >= 2 )); do wait -n; done
  program "$@" &
}

# missing WHAT: a driver or a library that is unavailable.
missing() {
  say "skipped: $1 is not there"
  skipped=$((skipped + 1))
}

# chosen PROGRAM FILTER PATTERN...: the tests of FILTER for a change: those it affects, those that a
# PATTERN names, and a tenth of the others.
chosen() {
  "build/$preset/tests/$1" --gtest_list_tests --gtest_filter="$2" |
    python3 tests/webgpu/touched.py --choose "$seed" "$LOOM_CHANGED_FILES" "${@:3}"
}

# The tests that always run: a decoder from end to end, errors, faults, submissions, and steps of
# training. Every op has a case over lavapipe: the tests with many cases run a part of them there
# (tests/webgpu/sample.hpp).
sample_over_lavapipe() {
  in_turn test_gpu "$wgpu" "$lavapipe" wgpu_whole GTEST_FILTER="$(chosen test_gpu '-GpuFaults.*' \
    'GpuDecoder.*' 'GpuErrors.*' '*GpuSteps.*' 'Kinds/GpuLayers.TrainAsOnTheCpu/Dense')"
  in_turn test_webgpu "$wgpu" "$lavapipe" wgpu_kernels \
    GTEST_FILTER="$(chosen test_webgpu '-GpuLayerBench.*' parts 'GpuReplay.*' 'GpuKernels.*')"
}
sample_over_swiftshader() {
  in_turn test_gpu "$dawn" "$swiftshader" dawn_whole GTEST_FILTER="$(chosen test_gpu "$some" \
    'GpuDecoder.*' 'GpuErrors.*' 'GpuFaults.AKernel*' 'GpuFaults.AnAdapter*' 'GpuFaults.ASession*')"
  in_turn test_webgpu "$dawn" "$swiftshader" dawn_kernels LOOM_GPU_CASES=few \
    GTEST_FILTER="$(chosen test_webgpu "$some_kernels:GpuConformance.EveryOpHasAKernel")"
}

# Every op once, a decoder, and the areas where libraries differ: submissions, copies, subgroups,
# errors. Faults are made for Dawn alone.
some='GpuDecoder*:GpuErrors.*:GpuFaults.*:GpuGates.*:GpuVariants.*:GpuPairs.*'
some_kernels='-GpuProducts.*:GpuSpans.*:GpuFused.*:GpuFusedAttention.*:GpuFusedMany.*:GpuFusedRecurrence.*:GpuProfile.*:GpuLayerBench.*'
some_over_swiftshader() {
  in_turn test_gpu "$dawn" "$swiftshader" dawn_whole GTEST_FILTER="$some"
  in_turn test_webgpu "$dawn" "$swiftshader" dawn_kernels LOOM_GPU_CASES=few GTEST_FILTER="$some_kernels"
}

over_swiftshader() {
  # Without the slowest tests there, which the other driver runs; with them if all are requested.
  local whole='-GpuShakespeare.*:GpuSampling.*:*GpuShowdown*:GpuTraining.*:*InOtherNumberTypes*:GpuMesh.*Learn*:*GpuRules*:GpuKfac*'
  local kernels='-GpuProducts.*'
  whole+=':GpuStories.TheSamePerplexity:GpuStories.CloseLogits*:GpuBatch.ASequence*:GpuBatch.AState*'
  if [[ "${LOOM_GPU_CASES:-}" == all ]]; then whole='*' kernels='*'; fi
  in_turn test_gpu "$dawn" "$swiftshader" dawn_whole GTEST_FILTER="$whole"
  in_turn test_webgpu "$dawn" "$swiftshader" dawn_kernels GTEST_FILTER="$kernels" \
    LOOM_GPU_CASES="${LOOM_GPU_CASES:-few}"
}

over_lavapipe() {
  in_turn test_gpu "$wgpu" "$lavapipe" wgpu_whole
  local slow=()
  if [[ "$whole" == yes || "${LOOM_GPU_CASES:-}" == all ]]; then slow=(LOOM_GPU_SLOW=yes); fi
  in_turn test_webgpu "$wgpu" "$lavapipe" wgpu_kernels LOOM_GPU_CASES="${LOOM_GPU_CASES:-}" ${slow[@]+"${slow[@]}"}
  [[ "$whole" == yes ]] || return 0
  in_turn test_webgpu "$wgpu" "$lavapipe" wgpu_immediates LOOM_GPU_FEATURES=all \
    GTEST_FILTER='GpuFused.*:GpuBeside.*:GpuReplay.*:GpuConformance.norm'
  # As an adapter without optional features.
  in_turn test_webgpu "$wgpu" "$lavapipe" wgpu_bare LOOM_GPU_FEATURES=off \
    GTEST_FILTER='GpuConformance.*'
}

# In one process, for its sum: one in a thousand of all cases may be beyond the bound.
every_case_over_lavapipe() {
  in_turn test_webgpu "$wgpu" "$lavapipe" every_case LOOM_GPU_CASES=all GTEST_FILTER='GpuConformance*'
}

# The tests of the change; everything if all is requested, or if the change is unknown.
seed="$(sample_seed)"
touched=everything
if [[ "$whole$every_case" == nono && -z "${LOOM_GPU_CASES:-}" && -e "${LOOM_CHANGED_FILES:-}" ]]; then
  touched="$(python3 tests/webgpu/touched.py "$LOOM_CHANGED_FILES")"
fi
say "touched: ${touched:-nothing}"
if [[ "$touched" == everything ]]; then
  over=some_over
  [[ "$whole" == no && "${LOOM_GPU_CASES:-}" != all ]] || over=over
else
  over=sample_over
  say "sample $seed: the same again with LOOM_SAMPLE_SEED=$seed LOOM_CHANGED_FILES=$LOOM_CHANGED_FILES"
fi

if [[ "$every_case" == yes ]]; then
  :  # lavapipe alone
elif [[ ! -f "$dawn" || -z "$swiftshader" ]]; then
  missing "$dawn or the package chromium-common, for Dawn over SwiftShader,"
else
  "${over}_swiftshader"
fi
if [[ ! -f "$wgpu" || -z "$lavapipe" ]]; then
  missing "$wgpu or the package mesa-vulkan-drivers, for wgpu-native over lavapipe,"
elif [[ "$every_case" == yes ]]; then
  every_case_over_lavapipe
elif [[ "$over" == sample_over ]]; then
  sample_over_lavapipe
else
  over_lavapipe
fi
wait

passed=0
failed=0
add_runs "$logs" ${runs[@]+"${runs[@]}"}
slowest_tests "$logs" >&2
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
