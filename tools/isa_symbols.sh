#!/usr/bin/env bash
# Objects compiled for one instruction set must not define weak symbols that other objects could define too: the linker
# might keep the AVX-512 copy of a shared inline function for every processor. NM names the nm of another processor.
# usage: tools/isa_symbols.sh BUILD_FOLDER
set -euo pipefail
build=${1:?build folder}
bad=0
found=0
while IFS= read -r -d '' object; do
  found=$((found + 1))
  while read -r symbol; do
    case "$symbol" in
      *loom::isa_*|*DW.ref*) ;;
      *) echo "isa_symbols: $(basename "$object") defines the shared weak symbol '$symbol'; mark it LOOM_INLINE" >&2; bad=1 ;;
    esac
  done < <("${NM:-nm}" -C "$object" | awk '$2 == "W" || $2 == "V" {sub(/^[^ ]* [WV] /, ""); print}')
done < <(find "$build" \( -name 'isa_avx*.cpp.o' -o -name 'isa_dotprod.cpp.o' -o -name 'isa_i8mm.cpp.o' \) -print0)
if [ "$found" = 0 ]; then echo "isa_symbols: no objects of such a set under $build; nothing to check"; exit 0; fi
[ "$bad" = 0 ] && echo "isa_symbols: $found objects, no shared weak symbol"
exit "$bad"
