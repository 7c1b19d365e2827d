#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs what is missing (Debian packages, a Python environment in .venv), configures and builds.
# Sourced by demo.sh and test.sh; idempotent. A second run takes seconds.
#
#   KE_BUILD_TARGETS   what to build (default: all)
#   KE_TEST_PACKAGES   Python packages beside PyTorch (default: none)

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

TORCH_VERSION=2.13.0
PACKAGES=(g++ cmake ninja-build pkg-config git python3 python3-venv ccache binutils
  ca-certificates openssl libfmt-dev nlohmann-json3-dev libexpected-dev libcli11-dev
  libsqlite3-dev libssl-dev libseccomp-dev libgtest-dev libbenchmark-dev)

step() { printf '== %s\n' "$*" >&2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; elif command -v sudo >/dev/null; then sudo "$@"; else
    echo "This needs root to install packages ($*): run it as root or install sudo." >&2
    exit 2
  fi
}

install_packages() {
  local missing=() package
  for package in "${PACKAGES[@]}"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
      missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  step "Installing ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    "${missing[@]}" >/dev/null
}

install_python() {
  local ready=.venv/torch-$TORCH_VERSION.ready
  [ ! -e "$ready" ] || return 0
  step "Installing PyTorch $TORCH_VERSION into .venv"
  python3 -m venv .venv
  .venv/bin/pip install --quiet "torch==$TORCH_VERSION" numpy
  touch "$ready"
}

# What tests need and the program does not.
install_test_packages() {
  local packages ready
  read -ra packages <<<"${KE_TEST_PACKAGES:-}"
  [ ${#packages[@]} -gt 0 ] || return 0
  ready=.venv/$(IFS=-; echo "${packages[*]}").ready
  [ ! -e "$ready" ] || return 0
  step "Installing ${packages[*]} into .venv"
  .venv/bin/pip install --quiet "${packages[@]}"
  touch "$ready"
}

build() {
  local launcher=()
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # another clone finds what this one compiled
  if [ ! -e build/build.ninja ]; then
    step "Configuring"
    # In batches of files, whose headers then cost once a batch (KernelEvolve.cmake).
    cmake -S . -B build -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_UNITY_BUILD=ON \
      -DCMAKE_UNITY_BUILD_BATCH_SIZE=12 "${launcher[@]}" >/dev/null
  fi
  step "Building"
  # shellcheck disable=SC2086
  ninja -C build -j "${KE_BUILD_JOBS:-$(nproc)}" ${KE_BUILD_TARGETS:-all} >build/build.log ||
    {
      tail -n 60 build/build.log >&2
      echo "The build failed; the whole log is build/build.log." >&2
      exit 1
    }
}

install_packages
install_python
install_test_packages
build
export KE_PYTHON=$PWD/.venv/bin/python
