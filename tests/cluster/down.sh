#!/bin/bash
# down.sh DIR    end the cluster that up.sh started in DIR, whatever its state, and remove DIR.
set -uo pipefail
D=${1:?usage: down.sh DIR}
[ -e "$D/bridge" ] || [ -e "$D/munge" ] || exit 0
D=$(cd "$D" && pwd -P)
export SLURM_CONF=$D/slurm.conf

# alive PID: reads the state, because kill -0 also succeeds on a zombie.
alive() {
  local stat
  stat=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) && [ -n "$stat" ] && [ "${stat%% *}" != Z ]
}

# stop PIDFILE COMMAND: ends the process if it still is COMMAND: the PID may be another's by now.
stop() {
  local pid
  pid=$(cat "$1" 2>/dev/null) || return 0
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$2" ] || return 0
  kill "$pid"
  for ((k = 0; k < 50; k++)); do alive "$pid" || return 0; sleep 0.05; done
  kill -9 "$pid" 2>/dev/null
}

# Killing process 1 of a node's PID namespace ends everything on the node.
for file in "$D"/n*.init; do
  [ -e "$file" ] || continue
  pid=$(cat "$file")
  tr '\0' '\n' < "/proc/$pid/environ" 2>/dev/null | grep -qxF "D=$D" && kill -9 "$pid"
done
stop "$D/slurmctld.pid" slurmctld
stop "$D/munge/pid" munged
if [ -e "$D/bridge" ]; then
  bridge=$(cat "$D/bridge")
  for link in $(ip -o link show master "$bridge" 2>/dev/null | grep -oE "\bgb${bridge#gbbr}n[0-9]+"); do
    ip link del "$link" 2>/dev/null
  done
  ip link del "$bridge" 2>/dev/null
fi
for ((k = 0; k < 20; k++)); do
  rm -rf "$D" 2>/dev/null && exit 0
  sleep 0.1
done
echo "down.sh: cannot remove $D" >&2
exit 1
