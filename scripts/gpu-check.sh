#!/bin/bash
# gpu-check.sh [flags] makes the GPU kit and runs it on this machine: it checks in under 15 minutes
# that gonbatch works on its GPUs, and how well. Flags are those of the kit (-help lists them).
#
# XLA's plugin for CUDA and NVIDIA's libraries are installed first (2.3 GB), unless
# GONBATCH_PLUGIN_DIR names a folder that has them. For a machine without Go or a network, make the
# kit elsewhere: make gpu-kit.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
[ "$(uname -sm)" = "Linux x86_64" ] || missing+=("Linux on x86-64, for which there is a CUDA plugin: this is $(uname -sm)")
command -v go >/dev/null || missing+=("Go: install the version in go.mod, and put it on PATH")
command -v "${CC:-cc}" >/dev/null || missing+=("a C compiler: on Debian, apt-get install gcc libc6-dev")
[ -e /dev/nvidiactl ] && ls /dev/nvidia[0-9]* >/dev/null 2>&1 ||
  missing+=("an NVIDIA GPU with its driver: there is no /dev/nvidiactl and /dev/nvidia0; in a container, start it with its GPUs")
if [ ${#missing[@]} != 0 ]; then
  echo "gpu-check: this machine lacks" >&2
  printf -- '- %s\n' "${missing[@]}" >&2
  exit 2
fi
scripts/gpu-kit.sh
exec bin/gpu-kit/run.sh -install "$@"
