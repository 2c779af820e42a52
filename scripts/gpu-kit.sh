#!/bin/bash
# gpu-kit.sh [--archive] makes bin/gpu-kit: all that a machine with GPUs needs to check gonbatch,
# even without Go, a compiler or a network. --archive packs it into bin/gpu-kit.tar.xz as well.
#
# There, unpack it and run gpu-kit/run.sh; run.sh -help lists the flags.
set -euo pipefail
cd "$(dirname "$0")/.."

kit=bin/gpu-kit
rm -rf $kit
mkdir -p $kit/{notebooks,tests,peers,data}
build=(go build -trimpath -ldflags="-s -w")

go build -trimpath -ldflags="-s -w -X main.commit=$(git describe --always --dirty 2>/dev/null || true)" -o $kit/gpu-check ./bench/gpu
"${build[@]}" -o $kit/step ./bench/step
"${build[@]}" -o bin/ ./cmd/submit
for suite in distributed trainer; do
  mkdir $kit/tests/$suite
  go test -c -trimpath -ldflags="-s -w" -o $kit/tests/$suite/ ./$suite
  [ ! -d $suite/testdata ] || cp -r $suite/testdata $kit/tests/$suite/
done

source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
for notebook in mnist gpt; do
  bin/submit export --cell train -o "$source/$notebook" notebooks/$notebook.ipynb >/dev/null
  (cd "$source/$notebook" && "${build[@]}" -o "$OLDPWD/$kit/notebooks/$notebook" ./train)
done
cp -r "$($kit/gpu-check part data)" $kit/data/
cp bench/peers/*.py $kit/peers/
$kit/gpu-check part expected >$kit/losses.json
$kit/gpu-check part forecasts >$kit/forecasts.json
cat >$kit/run.sh <<'END'
#!/bin/sh
# run.sh [flags] checks gonbatch on this machine's GPUs; run.sh -help lists the flags.
self=$(readlink -f "$0")
exec "${self%/*}/gpu-check" "$@"
END
chmod +x $kit/run.sh

[ "${1:-}" = --archive ] || exit 0
# The programs share much of their code: a dictionary of the size of two of them finds it.
tar -C bin -c gpu-kit | xz --x86 --lzma2=preset=6,dict=64MiB >$kit.tar.xz
ls -l $kit.tar.xz
