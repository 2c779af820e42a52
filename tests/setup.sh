#!/bin/bash
# setup.sh [tests|lint|bench]    install what tests, lint or benchmarks need and this machine lacks.
#                                Running it again is quick and changes nothing.
#
#   Debian packages       SLURM, munge, Open MPI, MPICH, Chromium, shellcheck, libjpeg-turbo. This
#                         needs root or passwordless sudo; without it, setup.sh says what is
#                         missing, and the tests that need it are skipped with the reason.
#   .cache/venv           Python with a real Jupyter client (tests/requirements.txt)
#   .cache/loggers-venv   Python with TensorBoard, MLflow and safetensors (tests/loggers-requirements.txt)
#   .cache/lab-venv       Python with JupyterLab, and Playwright to drive it in Chromium
#                         (kernel/jupyter-requirements.txt, tests/lab-requirements.txt)
#   .cache/onednn-venv    oneDNN (tests/onednn-requirements.txt), which also makes the benchmarks faster
#   .cache/bench-venv     Python with what the benchmarks compare with (bench/requirements.txt)
#   .cache/uv-venv        uv, which installs Python packages in a thirtieth of pip's time
#   .cache/bin            the tools of go.mod (gonb, goimports, gotestsum), those of tests/tools/go.mod
#                         (golangci-lint), and gopls, for completion in the kernel
#
# With CI=true, it is an error if something cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

GOPLS_VERSION=v0.21.1 # the newest that Go 1.26 builds
UV_VERSION=0.13.9

say() { echo "setup: $*" >&2; }

# problem MESSAGE: an error on a build machine, a warning elsewhere.
problem() {
  say "$*"
  if [ "${CI:-}" = true ]; then exit 1; fi
}

# beat says every 15 s that the setup goes on, until it has ended. It waits by reading from a pipe
# into which nobody writes, because a sleep would outlive it.
beat() {
  local setup=$$ never
  exec {never}<> <(:)
  while ! read -rt 15 -u "$never" && kill -0 "$setup" 2>/dev/null; do say "still installing after $SECONDS s"; done
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo "$@"
  else return 77
  fi
}

# For --mpi=pmix, Debian's SLURM opens libpmix.so, which is in libpmix-dev.
packages=(slurm-wlm slurm-wlm-basic-plugins munge iproute2 openmpi-bin libopenmpi3 mpich libmpich12 libpmix-dev gcc libc6-dev python3-venv shellcheck
  chromium fonts-dejavu-core libturbojpeg0)

missing_packages() {
  local p
  for p in "${packages[@]}"; do
    if [ "$p" = python3-venv ] && python3 -c 'import ensurepip, venv' 2>/dev/null; then continue; fi
    if [ "$p" = gcc ] && command -v gcc >/dev/null; then continue; fi
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || echo "$p"
  done
}

setup_debian() {
  local missing
  if ! command -v apt-get >/dev/null; then
    problem "not a Debian machine: install SLURM, munge, OpenMPI and MPICH yourself to run every test"
    return 0
  fi
  mapfile -t missing < <(missing_packages)
  if [ ${#missing[@]} = 0 ]; then return 0; fi
  say "installing ${missing[*]}"
  # The tests start the daemons with their own configuration: none may start by itself.
  if ! as_root apt-get update -qq ||
     ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; then
    problem "cannot install ${missing[*]}: run as root, apt-get install --no-install-recommends ${missing[*]}"
  fi
}

# setup_uv: uv, if there is a build for this machine
setup_uv() {
  if .cache/uv-venv/bin/uv --version 2>/dev/null | grep -q "^uv $UV_VERSION"; then return 0; fi
  python3 -m venv .cache/uv-venv && .cache/uv-venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$UV_VERSION"
}

# setup_python FOLDER REQUIREMENTS...: a Python environment with exactly these versions. If FOLDER
# has it already, this is quick. Where uv can't install it, for example because only pip knows the
# site's mirror, pip does. The modules are compiled once: where PYTHONDONTWRITEBYTECODE is set, each
# start of Python would compile them, which takes JupyterLab and MLflow seconds.
setup_python() {
  local venv=$1 file options=()
  shift
  if cat "$@" | cmp -s - "$venv/requirements.txt"; then return 0; fi
  say "installing $* in $venv"
  for file in "$@"; do options+=(-r "$file"); done
  if ! python3 -m venv --without-pip "$venv" || ! .cache/uv-venv/bin/uv pip install --quiet --compile-bytecode --python "$venv/bin/python" "${options[@]}"; then
    say "uv cannot install $*: trying pip"
    python3 -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check "${options[@]}"
  fi
  cat "$@" >"$venv/requirements.txt"
}

setup_go() {
  local bin=$PWD/.cache/bin
  if [ ! -x "$bin/gonb" ] || [ ! -x "$bin/gotestsum" ] || [ ! -x "$bin/goimports" ] || [ go.mod -nt "$bin/gonb" ]; then
    say "installing the tools of go.mod in .cache/bin"
    GOBIN=$bin go install -p 2 tool
    touch "$bin/gonb"
  fi
  if [ ! -x "$bin/gopls" ]; then
    GOBIN=$bin go install -p 2 "golang.org/x/tools/gopls@$GOPLS_VERSION" ||
      say "gopls $GOPLS_VERSION could not be installed: the kernel works without completion"
  fi
}

# golangci-lint has its own module: the product does not need its hundreds of requirements.
setup_lint() {
  local bin=$PWD/.cache/bin
  if [ -x "$bin/golangci-lint" ] && [ ! tests/tools/go.mod -nt "$bin/golangci-lint" ]; then return 0; fi
  say "installing golangci-lint in .cache/bin"
  GOBIN=$bin go -C tests/tools install -p 2 tool && touch "$bin/golangci-lint"
}

case ${1:-tests} in
  tests)
    beat &
    beat=$!
    trap 'kill "$beat" 2>/dev/null' EXIT
    setup_debian
    setup_uv || say "no uv: pip installs the Python packages"
    # Two at once. (By xargs: Ctrl-C does not reach what a script starts by &.)
    printf '%s\n' lab go jupyter loggers onednn | xargs -P 2 -n 1 tests/setup.sh
    ;;
  jupyter) setup_python .cache/venv tests/requirements.txt || problem "no Python environment for the Jupyter tests" ;;
  loggers) setup_python .cache/loggers-venv tests/loggers-requirements.txt || problem "no Python environment for the tests of the loggers" ;;
  lab) setup_python .cache/lab-venv kernel/jupyter-requirements.txt tests/lab-requirements.txt || problem "no Python environment with JupyterLab" ;;
  onednn) setup_python .cache/onednn-venv tests/onednn-requirements.txt || problem "no oneDNN" ;;
  go)
    setup_go
    setup_lint || problem "golangci-lint could not be installed"
    ;;
  lint) setup_lint ;;
  bench)
    setup_debian
    setup_uv || say "no uv: pip installs the Python packages"
    setup_python .cache/bench-venv bench/requirements.txt
    setup_python .cache/onednn-venv tests/onednn-requirements.txt
    setup_python .cache/venv tests/requirements.txt # It has nbconvert.
    setup_go
    ;;
  *) echo "usage: $0 [tests|lint|bench]" >&2; exit 2 ;;
esac
