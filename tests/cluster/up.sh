#!/bin/bash
# up.sh DIR    bring up a small, real SLURM cluster inside this machine.
#
# Every node has its own network, host-name, process, IPC and mount namespaces; one bridge joins
# them. It needs root and Debian's slurm-wlm, slurm-wlm-basic-plugins, munge and iproute2, and does
# not touch /etc/munge, /etc/slurm or /run.
#
# Settings, as environment variables:
#   NODES=3  CPUS=4  MEM=2000   nodes, and the CPUs and megabytes of each
#   GPUS=2  GPUTYPE=            fake GPUs of each node, and their type
#   GPU_SCRIPT=                 a script that makes programs find the GPUs in /dev
#   PROLOG=                     a script that each node runs before a job's first step on it
#   CLUSTER=testbed             name of the cluster
#   EXTRA_CONF=FILE             appended to slurm.conf
#
# Afterwards: SLURM_CONF=DIR/slurm.conf sbatch ... submits a job, DIR/on n1 CMD runs a command on a
# node, and down.sh DIR ends everything.
set -euo pipefail
umask 022
here=$(cd "$(dirname "$0")" && pwd -P)
D=${1:?usage: up.sh DIR}
mkdir -p "$D"
D=$(cd "$D" && pwd -P)
NODES=${NODES:-3} CPUS=${CPUS:-4} MEM=${MEM:-2000} GPUS=${GPUS:-2}
nodes="n[1-$NODES]"
[ "$NODES" = 1 ] && nodes=n1
host=$(hostname -s)
export SLURM_CONF=$D/slurm.conf

# claim_bridge takes the first free network 10.77.ID.0/24. Creating the bridge is atomic, so several
# clusters can start at once.
claim_bridge() {
  for ((id = 20; id < 220; id++)); do
    if ip link add "gbbr$id" type bridge 2>/dev/null; then
      bridge=gbbr$id net=10.77.$id
      echo "$bridge" > "$D/bridge"
      ip addr add "$net.254/24" dev "$bridge"
      ip link set "$bridge" up
      return
    fi
  done
  echo "up.sh: cannot create a network bridge: $(ip link add gbbr20 type bridge 2>&1)" >&2
  exit 1
}

# start_munge runs a private daemon with its own key and socket.
start_munge() {
  head -c 128 /dev/urandom > "$D/munge/key"
  chmod 600 "$D/munge/key"
  munged --force --key-file="$D/munge/key" --socket="$D/munge/sock" --pid-file="$D/munge/pid" \
         --log-file="$D/munge/log" --seed-file="$D/munge/seed" 2> "$D/munge/err"
}

# make_gpus: gres.conf needs real character devices, so these are copies of /dev/null named like
# GPUs.
make_gpus() {
  gres=
  : > "$D/gres.conf"
  ((GPUS)) || return 0
  for ((g = 0; g < GPUS; g++)); do mknod -m 666 "$D/dev/nvidia$g" c 1 3; done
  [ -z "${GPU_SCRIPT:-}" ] || echo "$GPU_SCRIPT" > "$D/in-dev"
  gres="Gres=gpu:${GPUTYPE:+$GPUTYPE:}$GPUS"
  echo "NodeName=$nodes Name=gpu ${GPUTYPE:+Type=$GPUTYPE }File=$D/dev/nvidia[0-$((GPUS - 1))]" > "$D/gres.conf"
}

write_conf() {
  cat > "$SLURM_CONF" <<C
ClusterName=${CLUSTER:-testbed}
AuthType=auth/munge
AuthInfo=socket=$D/munge/sock,cred_expire=5
CredType=cred/munge
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
SlurmctldHost=$host($net.254)
SlurmctldPort=$((20000 + id))
SlurmdPort=6818
StateSaveLocation=$D/ctld
SlurmctldPidFile=$D/slurmctld.pid
SlurmdPidFile=$D/slurmd-%n.pid
SlurmdSpoolDir=$D/spool-%n
SlurmctldLogFile=$D/log/slurmctld.log
SlurmdLogFile=$D/log/slurmd-%n.log
TmpFS=$D/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=5
JobCompType=jobcomp/filetxt
JobCompLoc=$D/jobcomp.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
GresTypes=gpu
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
SlurmctldTimeout=10
SlurmdTimeout=30
KillWait=3
UnkillableStepTimeout=20
CompleteWait=0
KillOnBadExit=1
MinJobAge=600
InactiveLimit=0
SchedulerParameters=bf_interval=2,batch_sched_delay=0,sched_interval=2
PartitionName=main Nodes=$nodes Default=YES MaxTime=60 DefaultTime=10 State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=high Nodes=$nodes MaxTime=60 DefaultTime=10 State=UP PriorityTier=10 PreemptMode=OFF
C
  for ((i = 1; i <= NODES; i++)); do
    echo "NodeName=n$i NodeAddr=$net.$i CPUs=$CPUS RealMemory=$MEM $gres State=UNKNOWN" >> "$SLURM_CONF"
  done
  if [ -n "${PROLOG:-}" ]; then
    echo "$PROLOG" > "$D/prolog"
    chmod +x "$D/prolog"
    echo "Prolog=$D/prolog" >> "$SLURM_CONF"
  fi
  [ -z "${EXTRA_CONF:-}" ] || cat "$EXTRA_CONF" >> "$SLURM_CONF"
  grep -q ^AccountingStorageType "$SLURM_CONF" || echo AccountingStorageType=accounting_storage/none >> "$SLURM_CONF"
}

# write_names: every node knows the names of all others. An unknown name fails at once, not after
# ten seconds.
write_names() {
  { echo "127.0.0.1 localhost"
    echo "$net.254 $host"
    for ((i = 1; i <= NODES; i++)); do echo "$net.$i n$i"; done; } > "$D/hosts"
  printf 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n' > "$D/resolv.conf"
  cat > "$D/on" <<C
#!/bin/bash
# on NODE CMD...   run CMD in NODE's namespaces
n=\$1; shift
export SLURM_CONF=$SLURM_CONF
exec nsenter -t "\$(cat "$D/\$n.init")" -n -u -m -i -p -- "\$@"
C
  chmod +x "$D/on"
}

idle() { [ "$(timeout 2 sinfo -h -p main -t idle -o %D 2>/dev/null)" = "$NODES" ]; }

mkdir -p "$D"/{munge,ctld,log,dev}
claim_bridge
start_munge
make_gpus
write_conf
write_names
touch "$D/jobcomp.txt"
slurmctld
for ((i = 1; i <= NODES; i++)); do
  mkdir -p "$D/spool-n$i" "$D/tmp-n$i"
  chmod 1777 "$D/tmp-n$i"
  "$here/node.sh" "$D" "n$i" start
done
for ((end = SECONDS + 300; SECONDS < end; )); do
  if idle; then exit 0; fi
  sleep 0.1
done
echo "up.sh: the cluster did not come up within 5 minutes" >&2
timeout 5 sinfo -N -o '%N %P %T %E' >&2 || true
tail -n 5 "$D"/log/*.log >&2
exit 1
