#!/usr/bin/env bash
# Installs the dependencies of Loom, with apt. If all of them are installed, it does nothing and needs no network.
#   scripts/install_deps.sh           to build the library and the program.
#   scripts/install_deps.sh --tests   to run every test as well.
#   scripts/install_deps.sh --tests needed   the part that the unit tests need; --tests more: the rest.
#   scripts/install_deps.sh --release for scripts/release.sh.
set -euo pipefail
# shellcheck source=scripts/common.sh
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

to_build=(g++ cmake ninja-build ccache nlohmann-json3-dev libxxhash-dev libpcre2-dev
  zlib1g-dev libcli11-dev libfmt-dev libboost1.81-dev libcurl4-openssl-dev libssl-dev
  libedit-dev libpng-dev libjpeg62-turbo-dev libflatbuffers-dev)
to_test=(libgtest-dev libgmock-dev python3 curl openssl libsndfile1)
# Second compilers, sanitizer runtimes, the formatter, installers of Python packages, and ARM64: the
# compiler and an emulator; a browser; C#; comparison of binary interfaces. Tests that need an
# absent one are skipped.
to_test_more=(clang-19 libclang-rt-19-dev clang-14 libclang-rt-14-dev clang-format-14 patch python3-pip
  python3-venv pkg-config g++-aarch64-linux-gnu qemu-user-static chromium mono-mcs
  libmono-system-core4.0-cil abigail-tools)
# Libraries of releases are compiled from the sources of Debian.
to_release=(make patch dpkg-dev curl python3 python3-pip python3-venv)
have node || to_test_more+=(nodejs npm)

usage() {
  sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"
}

case "${1:-}" in
  "") required=("${to_build[@]}") optional=() ;;
  --tests)
    required=("${to_build[@]}" "${to_test[@]}") optional=("${to_test_more[@]}")
    case "${2:-}" in
      "") ;;
      needed) optional=() ;;
      more) required=() ;;
      *) die "unknown word '$2' after --tests; try needed, more or --help" ;;
    esac
    ;;
  --release) required=("${to_build[@]}" "${to_release[@]}") optional=() ;;
  -h|--help) usage; exit 0 ;;
  *) die "unknown option '$1'; try --tests, --release or --help" ;;
esac

if ! have apt-get || ! have dpkg-query; then
  say "note: no apt-get here; install these yourself if the build asks for them: ${required[*]-}"
  exit 0
fi

mapfile -t missing < <(missing_of ${required[@]+"${required[@]}"} ${optional[@]+"${optional[@]}"})
if (( ${#missing[@]} == 0 )); then
  exit 0
fi

say "installing: ${missing[*]}"
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
apt update >"$log" 2>&1 || die "apt-get update failed: $(tail -n 1 "$log")"

# An optional package that this release of Debian or Ubuntu lacks is left out.
wanted=()
for package in "${missing[@]}"; do
  if [[ " ${optional[*]-} " != *" $package "* ]] || apt-cache show "$package" >/dev/null 2>&1; then
    wanted+=("$package")
  else
    say "note: $package is not available here; the tests that need it will be skipped"
  fi
done
if (( ${#wanted[@]} > 0 )); then
  apt install -y --no-install-recommends "${wanted[@]}" >"$log" 2>&1 ||
    die "apt-get install failed: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log")"
fi
