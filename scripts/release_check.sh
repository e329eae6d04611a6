#!/usr/bin/env bash
# Tries released files as their users do: in folders with nothing but a fresh Debian or Ubuntu, without a compiler.
# Each file has 60 seconds from the installation to the output of its first example. The last line counts.
#   scripts/release_check.sh                every part whose file is in build/releases/files
#   scripts/release_check.sh PART...        these: static, arm64, program, wheel, deb, image, npm
# It needs root for chroot, and debootstrap with the network on its first run. Otherwise it skips and says so.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
cd "$LOOM_ROOT"

known=(static arm64 program wheel deb image npm)
case "${1:-}" in
  -h|--help) usage_of "${BASH_SOURCE[0]}"; exit 0 ;;
  -*) die "unknown option '$1'; try --help" ;;
esac
parts=("$@")
(( $# > 0 )) || parts=("${known[@]}")
for part in "${parts[@]}"; do
  [[ " ${known[*]} " == *" $part "* ]] || die "unknown part '$part'; the parts are ${known[*]}"
done

files="$PWD/build/releases/files" roots="$PWD/build/releases/roots"
limit=60 passed=0 failed=0 skipped=0
story=(run models/stories.entity -p "Once upon a time" --max-tokens 40)

skip() {
  say "skipped: $1"
  skipped=$((skipped + 1))
}
# passes NAME FUNCTION ARGUMENT...: counts it; its output is printed if it fails.
passes() {
  local name="$1" log begin spent status=0
  shift
  log="$roots/log" begin="$SECONDS"
  (set -e; "$@") >"$log" 2>&1 || status=$?
  spent=$((SECONDS - begin))
  if (( status == 0 && spent < limit )); then
    say "ok: $name, $spent s"
    passed=$((passed + 1))
  else
    say "FAILED: $name, exit $status after $spent s"
    tail -n 20 "$log" >&2
    failed=$((failed + 1))
  fi
}

# system SUITE: a root of Debian or Ubuntu with the packages that users of Python have; made once.
system() {
  local suite="$1" components=main how=()
  [[ ! -f "$roots/$suite/complete" ]] || return 0
  if [[ "$suite" == noble ]]; then
    components=main,universe how=("" /usr/share/debootstrap/scripts/gutsy)
  fi
  rm -rf "${roots:?}/$suite"
  debootstrap --variant=minbase --components="$components" --no-check-gpg \
    --include=ca-certificates,python3,python3-venv,python3-pip "$suite" "$roots/$suite" "${how[@]}" \
    >"$roots/$suite.log" 2>&1 && touch "$roots/$suite/complete"
}
# fresh SUITE: a copy of that root at $roots/fresh, with the network of this machine.
fresh() {
  rm -rf "${roots:?}/fresh"
  cp -a --reflink=auto "$roots/$1" "$roots/fresh"
  cp /etc/resolv.conf /etc/hosts "$roots/fresh/etc/"
  [[ ! -f /etc/pip.conf ]] || cp /etc/pip.conf "$roots/fresh/etc/"
  mkdir -p "$roots/fresh/try"
}
inside() {
  chroot "$roots/fresh" /usr/bin/env -i PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/try LC_ALL=C.UTF-8 \
    /bin/sh -ec "cd /try; $1"
}

# The static program in a folder without any other file.
try_static() {
  local root="$roots/empty"
  rm -rf "$root"
  mkdir -p "$root"
  tar -xzf "$1" -C "$root" --strip-components=1
  chroot "$root" /loom "${story[@]}" | grep -q .
  chroot "$root" /loom train /examples/fruit.csv --target fruit --epochs 5 -o /fruit.entity
  chroot "$root" /loom eval /fruit.entity /examples/fruit.csv
}
# On another processor an emulator runs it, with the C library of Debian's cross compiler.
try_arm64() {
  local root="$roots/empty" run=()
  [[ "$(uname -m)" == aarch64 ]] || run=(qemu-aarch64-static -L /usr/aarch64-linux-gnu)
  rm -rf "$root"
  mkdir -p "$root"
  tar -xzf "$1" -C "$root" --strip-components=1
  cd "$root"
  "${run[@]}" ./loom "${story[@]}" | grep -q .
  "${run[@]}" ./loom train examples/fruit.csv --target fruit --epochs 5 -o fruit.entity
  "${run[@]}" ./loom eval fruit.entity examples/fruit.csv
}
try_program() {
  fresh "$2"
  tar -xzf "$1" -C "$roots/fresh/try" --strip-components=1
  inside "./loom run models/stories.entity -p 'Once upon a time' --max-tokens 40 | grep .
    ./loom train examples/fruit.csv --target fruit --epochs 5 -o fruit.entity
    ./loom eval fruit.entity examples/fruit.csv
    ./loom doctor"
}
# Without NumPy: lists in, lists out.
first_example() {
  cat <<'PY'
import loom

net = loom.Sequential([loom.Dense(16, activation="tanh"), loom.Dense(1)], input=2, seed=7)
x, y = [[0, 0], [0, 1], [1, 0], [1, 1]], [[0], [1], [1], [0]]
net.fit(x, y, epochs=300, loss="mse", verbose=False)
print(loom.__version__, net.predict(x))
PY
}
try_wheel() {
  fresh "$2"
  cp "$1" "$roots/fresh/try/"
  first_example >"$roots/fresh/try/first.py"
  inside "python3 -m venv env; env/bin/pip install -q --no-index ./$(basename "$1"); env/bin/python first.py"
}
try_deb() {
  fresh "$2"
  cp "$1" "$roots/fresh/try/"
  inside "dpkg -i ./$(basename "$1"); cd /tmp
    loom run /usr/share/loom/stories.entity -p 'Once upon a time' --max-tokens 40 | grep .
    test -s /usr/share/man/man1/loom.1.gz; test -s /usr/share/bash-completion/completions/loom
    dpkg -r loom; test ! -e /usr/bin/loom"
}
# The second stage of the Dockerfile, step by step: its commands, the server as its user, its health check.
try_image() {
  local stage steps health server
  fresh "$2"
  cp "$1" "$roots/fresh/tmp/"
  stage="$(sed -n '/^FROM debian:12-slim/,$p' packaging/Dockerfile | grep -v '^#' | sed -z 's/\\\n/ /g')"
  steps="$(sed -n 's/^RUN //p' <<<"$stage")"
  health="$(sed -n 's/^HEALTHCHECK .*CMD \[\(.*\)\]$/[\1]/p' <<<"$stage" | sed 's/--[a-z-]*=[^ ]* //g' |
    python3 -c 'import json, sys; print(json.loads(sys.stdin.read())[2])')"
  inside "$steps"
  chroot --userspec=10001 "$roots/fresh" /usr/bin/env -i PATH=/usr/bin:/bin LOOM_API_KEY=secret HOME=/var/lib/loom \
    loom serve --models-folder /models --host 0.0.0.0 &
  server=$!
  # shellcheck disable=SC2064
  trap "kill $server 2>/dev/null || true" EXIT
  until chroot --userspec=10001 "$roots/fresh" /bin/bash -c "$health"; do kill -0 "$server"; sleep 0.2; done
  kill "$server"
  wait "$server" || true
}
try_npm() {
  local to="$roots/npm"
  rm -rf "$to"
  mkdir -p "$to"
  cd "$to"
  npm init -y
  npm install --offline --no-audit --no-fund "$1"
  cat >first.mjs <<'JS'
import { init } from "@loom-engine/loom";
const loom = await init();
const llm = await loom.load(process.argv[2]);
for await (const token of llm.stream("Once upon a time", { maxTokens: 20 })) process.stdout.write(token.text);
JS
  node first.mjs "$LOOM_ROOT/models/stories.entity"
}

# released PATTERN: the file of the release, or nothing.
released() {
  find "$files" -maxdepth 1 -name "$1" 2>/dev/null | sort | head -n 1
}
# alone PART PATTERN: a file that needs no system.
alone() {
  local file
  file="$(released "$2")"
  if [[ -n "$file" ]]; then passes "$1" "try_$1" "$file"; else skip "$1: scripts/release.sh has not made it"; fi
}
# in_systems PART PATTERN SUITE...
in_systems() {
  local part="$1" file suite
  file="$(released "$2")"
  shift 2
  if [[ -z "$file" ]]; then skip "$part: scripts/release.sh has not made it"; return; fi
  for suite in "$@"; do
    if system "$suite"; then
      passes "$part, $suite" "try_$part" "$file" "$suite"
    else
      skip "$part: no packages of $suite; see $roots/$suite.log"
    fi
  done
}

mkdir -p "$roots"
if [[ "$(id -u)" != 0 ]] || ! have debootstrap; then
  skip "it needs root and debootstrap"
  parts=()
fi
for part in ${parts[@]+"${parts[@]}"}; do
  case "$part" in
    static) alone static 'loom-*-linux-x86_64-static.tar.gz' ;;
    arm64) alone arm64 'loom-*-linux-aarch64.tar.gz' ;;
    program) in_systems program 'loom-*-linux-x86_64.tar.gz' bullseye bookworm noble ;;
    wheel) in_systems wheel 'loom_engine-*-manylinux_2_28_x86_64.whl' bullseye bookworm noble ;;
    deb) in_systems deb 'loom_*_amd64.deb' bullseye bookworm noble ;;
    image) in_systems image 'loom_*_amd64.deb' bookworm ;;
    npm) alone npm 'loom-engine-loom-*.tgz' ;;
  esac
done
rm -rf "${roots:?}/fresh" "${roots:?}/empty" "${roots:?}/npm"
printf '%s passed, %s failed, %s skipped\n' "$passed" "$failed" "$skipped"
(( failed == 0 ))
