#!/bin/bash
# node.sh DIR NODE start|crash: start a node of up.sh's cluster, or pull its plug: kill its process
# 1, which ends everything on the node at once.
set -euo pipefail
D=$(cd "$1" && pwd -P)
N=$2
bridge=$(cat "$D/bridge")
id=${bridge#gbbr}
link=gb$id$N

crash() {
  kill -9 "$(cat "$D/$N.init")"
  rm -f "$D/$N.init"
  ip link del "$link" 2>/dev/null || true
}

# boot is process 1 of the node. Like a real node, it stays "powered on" when slurmd dies.
boot='
  hostname $N
  mount --bind $D/hosts /etc/hosts
  mount --bind $D/resolv.conf /etc/resolv.conf || true
  mount -t tmpfs shm /dev/shm
  ip link set lo up
  until [ -e $D/$N.go ]; do sleep 0.05; done
  trap "kill \$p; wait \$p; exit" TERM
  slurmd -D & p=$!
  while kill -0 $p 2>/dev/null; do wait $p || true; done
  while :; do sleep 1000 & wait $!; done'

# gpus is a command that makes the node find its GPUs in /dev, if this is requested.
gpus=()
[ ! -e "$D/in-dev" ] || gpus=("$(cat "$D/in-dev")" "$(ls "$D/dev" | wc -l)")

start() {
  rm -f "$D/$N.go" "$D/slurmd-$N.pid"
  D=$D N=$N SLURM_CONF=$D/slurm.conf setsid unshare --net --uts --ipc --pid --mount --propagation private \
    --fork --kill-child --mount-proc "${gpus[@]}" bash -c "$boot" </dev/null >"$D/log/$N.out" 2>&1 &
  local parent=$! init=
  for ((k = 0; k < 250; k++)); do
    init=$(tr -d ' ' < "/proc/$parent/task/$parent/children" 2>/dev/null) || true
    [ -n "$init" ] && break
    sleep 0.02
  done
  [ -n "$init" ] || { echo "node.sh: $N did not start: $(cat "$D/log/$N.out")" >&2; exit 1; }
  echo "$init" > "$D/$N.init"
  ip link add "$link" type veth peer name eth0 netns "$init"
  ip link set "$link" master "$bridge" up
  nsenter -t "$init" -n sh -c "ip addr add 10.77.$id.${N#n}/24 dev eth0; ip link set eth0 up; ip route add default via 10.77.$id.254"
  touch "$D/$N.go"
}

case $3 in
  start | crash) "$3" ;;
  *) echo "node.sh: $3: want start or crash" >&2; exit 2 ;;
esac
