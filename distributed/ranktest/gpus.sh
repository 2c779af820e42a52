#!/bin/bash
# gpus.sh N CMD... runs CMD with a /dev that has N GPUs. Its devices are copies of /dev/null.
#
# It needs root, and its own mount namespace: unshare --mount --propagation private gpus.sh 4 CMD
set -euo pipefail
n=$1
shift
dev=$(mktemp -d)
mount -t tmpfs -o mode=755 dev "$dev"
cp -a /dev/{null,zero,full,random,urandom,tty,fd,stdin,stdout,stderr} "$dev"
for folder in pts shm; do
  mkdir "$dev/$folder"
  mount --rbind "/dev/$folder" "$dev/$folder"
done
ln -s pts/ptmx "$dev/ptmx"
((n == 0)) || mknod -m 666 "$dev/nvidiactl" c 1 3
for ((g = 0; g < n; g++)); do mknod -m 666 "$dev/nvidia$g" c 1 3; done
mount --move "$dev" /dev
rmdir "$dev"
exec "$@"
