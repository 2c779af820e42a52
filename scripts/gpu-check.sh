#!/bin/bash
# gpu-check.sh [flags] checks in under 8 minutes that gonbatch works on this machine's GPUs, and how
# well.
#
# It checks what needs a GPU: XLA's clients with our key-value store, all-reduces between all GPUs,
# the time of a training run step next to PyTorch's and JAX's, the forecast of a step's memory next
# to its real peak, and the compile cache. The result is a table; the exit code is 1 if a check has
# failed. XLA's plugin for CUDA and NVIDIA's libraries are installed first (2.3 GB), unless
# GONBATCH_PLUGIN_DIR names a folder that has them. Flags are those of bench/gpu (-help lists them).
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
exec go run ./bench/gpu "$@"
