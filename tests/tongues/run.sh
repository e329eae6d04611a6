#!/usr/bin/env bash
# Every language over the C interface: each prints the bits of a network, its training and a story, which
# have one hash; each is used wrongly, and says so by code; the program in each README runs. A language
# whose tools are not here is skipped. The last line counts.
#   tests/tongues/run.sh [PRESET] [LANGUAGE]...     cpp c python rust go java csharp dart
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
cd "$LOOM_ROOT"

case "${1:-}" in -h|--help) sed -n '2,5s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;; esac
preset="${1:-dev}"
if (( $# > 0 )); then shift; fi
wanted=("$@")
(( ${#wanted[@]} > 0 )) || wanted=(cpp c python rust go java csharp dart)
built="$LOOM_ROOT/build/$preset"
work="$LOOM_ROOT/build/tongues"
passed=0 failed=0 skipped=0
expected=
mkdir -p "$work"

if [[ ! -f "$built/libloom.so" ]]; then
  say "skipped: build/$preset has no shared library; configure with -DLOOM_INSTALL=ON"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
fi
export LD_LIBRARY_PATH="$built${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LOOM_TEST_MODEL="$LOOM_ROOT/models/stories.entity"

skip() {
  say "$1: skipped, $2"
  skipped=$((skipped + 1))
}

# check WHAT CMD...: silent unless it fails.
check() {
  if "${@:2}" >"$work/log" 2>&1; then
    passed=$((passed + 1))
  else
    say "$1: FAILED"
    tail -n 40 "$work/log" >&2
    failed=$((failed + 1))
  fi
}

# bits LANGUAGE CMD...: the four lines that it prints are those of the first language.
bits() {
  local hash
  if ! "${@:2}" >"$work/$1.bits" 2>"$work/log"; then
    say "$1: FAILED: $(tail -n 5 "$work/log")"
    failed=$((failed + 1))
    return
  fi
  hash="$(grep -v '^bits: 0 failed$' "$work/$1.bits" | sha256sum | cut -c 1-32)"
  expected="${expected:-$hash}"
  if [[ "$hash" == "$expected" && "$(grep -c '^outputs [0-9a-f]\{5760\}$' "$work/$1.bits")" == 2 ]]; then
    say "$1: $hash"
    passed=$((passed + 1))
  else
    say "$1: FAILED: $hash, not $expected; see $work/$1.bits"
    failed=$((failed + 1))
  fi
}

# readme FILE LANGUAGE TO: the program that a README shows.
readme() {
  python3 - "$1" "$2" >"$3" <<'END'
import sys
from pathlib import Path
sys.dont_write_bytecode = True
sys.path.append("tests/tools")
from markdown import blocks
print(next(b.text for b in blocks(Path(sys.argv[1])) if b.language == sys.argv[2]), end="")
END
}


tongue_cpp() {
  have g++ || { skip cpp "g++ is not installed"; return; }
  if [[ ! "$work/bits_cpp" -nt tests/tongues/bits.cpp || ! "$work/bits_cpp" -nt "$built/libloom.so" ]]; then
    g++ -std=c++20 -O1 -Wall -Wextra -Werror -Iinclude tests/tongues/bits.cpp -L"$built" -lloom -o "$work/bits_cpp"
  fi
  bits cpp "$work/bits_cpp"
  [[ -x "$built/cli/loom" ]] || { skip program "build/$preset has no program"; return; }
  check "program: its story" diff <(sed -n '4,$s/^story //p;5,$p' "$work/cpp.bits") \
    <("$built/cli/loom" run models/stories.entity -p "Once upon a time" --max-tokens 60 --temperature 0.8 --seed 7 --no-echo --quiet)
}

tongue_c() {
  [[ -x "$built/tests/capi/test_capi" ]] || { skip c "build/$preset has no test_capi"; return; }
  bits c "$built/tests/capi/test_capi" bits
  check "c: misuse" "$built/tests/capi/test_capi" misuse
}

tongue_python() {
  bits python env LOOM_LIBRARY="$built/libloom.so" PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 \
    python3 tests/tongues/bits.py
}

tongue_rust() {
  have cargo || { skip rust "cargo is not installed"; return; }
  local lib="$work/rust/debug"
  export LOOM_LIB_DIR="$built" CARGO_TARGET_DIR="$work/rust"
  cargo=(cargo --quiet --config 'net.offline=true')
  bits rust "${cargo[@]}" run --manifest-path bindings/rust/Cargo.toml --example bits
  check "rust: misuse" "${cargo[@]}" test --manifest-path bindings/rust/Cargo.toml --test misuse
  if have cargo-clippy; then
    check "rust: clippy" "${cargo[@]}" clippy --manifest-path bindings/rust/Cargo.toml --all-targets -- -D warnings
  fi
  check "rust: builds" "${cargo[@]}" build --manifest-path bindings/rust/Cargo.toml
  readme bindings/rust/README.md rust "$work/readme.rs"
  check "rust: README" rustc --edition 2021 -L "$built" --extern loom_engine="$lib/libloom_engine.rlib" \
    -o "$work/readme_rust" "$work/readme.rs"
  (cd "$work" && ln -sfn "$LOOM_ROOT/models" models)
  check "rust: README runs" env -C "$work" bash -c '"$0" | grep -q "accuracy Some(1.0)"' ./readme_rust
}

tongue_go() {
  have go || { skip go "go is not installed"; return; }
  export CGO_CFLAGS="-I$LOOM_ROOT/include" CGO_LDFLAGS="-L$built" GOFLAGS=-mod=mod GOCACHE="$work/go-cache" \
    GOTOOLCHAIN=local GOPROXY=off
  bits go go run -C bindings/go ./bits
  check "go: vet" go vet -C bindings/go ./...
  check "go: misuse" go test -C bindings/go .
  check "go: gofmt" test -z "$(gofmt -l bindings/go)"
  mkdir -p "$work/go"
  readme bindings/go/README.md go "$work/go/main.go"
  printf 'module example\n\ngo 1.21\n\nrequire loom v0.0.0\n\nreplace loom => %s\n' "$LOOM_ROOT/bindings/go" >"$work/go/go.mod"
  ln -sfn "$LOOM_ROOT/models" "$work/go/models"
  check "go: README" bash -c 'cd "$0" && go run . | grep -q "^1 <nil>"' "$work/go"
}

tongue_java() {
  have javac && have java || { skip java "javac is not installed"; return; }
  local to="$work/java" jna=5.14.0 from
  local jar="$to/jna-$jna.jar"
  mkdir -p "$to/classes"
  if [[ ! -f "$jar" ]]; then
    have mvn && mvn -q -B dependency:copy -Dartifact=net.java.dev.jna:jna:$jna -DoutputDirectory="$to" >"$work/log" 2>&1 ||
      { skip java "JNA cannot be had from Maven Central"; return; }
  fi
  mapfile -t from < <(find bindings/java/src -name '*.java')
  readme bindings/java/README.md java "$to/Example.java"
  check "java: compiles" javac -Xlint:all,-serial,-try -Werror -encoding UTF-8 -d "$to/classes" -cp "$jar" \
    "${from[@]}" "$to/Example.java"
  local run=(java -XX:TieredStopAtLevel=1 -Djna.library.path="$built" -cp "$to/classes:$jar")
  bits java "${run[@]}" Bits
  check "java: misuse" "${run[@]}" Misuse "$to"
  ln -sfn "$LOOM_ROOT/models" "$to/models"
  check "java: README" env -C "$to" bash -c '"$@" | grep -q "^1\.0"' - "${run[@]}" Example
}

tongue_csharp() {
  have mcs && have mono || { skip csharp "mono-mcs is not installed"; return; }
  local to="$work/csharp"
  mkdir -p "$to"
  local compile=(mcs -warnaserror -langversion:7)
  check "csharp: compiles" "${compile[@]}" -nowarn:0649,0169 -target:library -out:"$to/Loom.dll" bindings/csharp/*.cs
  readme bindings/csharp/README.md csharp "$to/Example.cs"
  local name
  for name in bindings/csharp/tests/Bits bindings/csharp/tests/Misuse "$to/Example"; do
    check "csharp: $(basename "$name")" "${compile[@]}" -r:"$to/Loom.dll" -out:"$to/$(basename "$name").exe" "$name.cs"
  done
  bits csharp mono "$to/Bits.exe"
  check "csharp: misuse" mono "$to/Misuse.exe" "$to"
  ln -sfn "$LOOM_ROOT/models" "$to/models"
  check "csharp: README" env -C "$to" bash -c 'mono Example.exe | grep -q "^1$"'
}

tongue_dart() {
  have dart || { skip dart "no Dart SDK is installed; bindings/dart was generated, not compiled"; return; }
  check "dart: analyze" dart analyze bindings/dart
}

for language in "${wanted[@]}"; do
  declare -F "tongue_$language" >/dev/null || die "there is no language '$language'; try --help"
  start=$SECONDS
  "tongue_$language"
  say "$language: $((SECONDS - start)) s"
done
printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
