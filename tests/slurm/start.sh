#!/usr/bin/env bash
# Start a Slurm that consists of this machine alone, on loopback, for the tests. Prints the line that makes it
# the current one:
#
#     eval "$(tests/slurm/start.sh)"       then sinfo, sbatch, squeue, scancel work
#     tests/slurm/stop.sh                  ends it
#
# Needs root and Debian's slurm-wlm and munge. Keys, state and logs lie in $SPHERESWEEP_SLURM (a folder of its own
# under /tmp); nothing in /etc is read or written, and it takes two free ports that are not Slurm's usual ones, so a
# cluster that this machine belongs to is left alone, and so is another one of these in another folder.
set -euo pipefail

home=${SPHERESWEEP_SLURM:-/tmp/spheresweep-slurm}
node=$(hostname -s)
export SLURM_CONF=$home/slurm.conf

for program in munged slurmctld slurmd sinfo; do
  if ! PATH=$PATH:/usr/sbin command -v "$program" >/dev/null; then
    echo "$program is missing: apt-get install slurm-wlm munge" >&2
    exit 1
  fi
done
PATH=$PATH:/usr/sbin

node_is_up() { sinfo --noheader --format=%T 2>/dev/null | grep -qE '^(idle|mixed|allocated|completing)'; }

if [ -e "$SLURM_CONF" ]; then
  if node_is_up; then
    echo "export SLURM_CONF=$SLURM_CONF"
    exit 0
  fi
  "$(dirname "$0")/stop.sh" # what is left of one that died
fi

is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
port=16817
while is_taken "$port" || is_taken $((port + 1)); do port=$((port + 2)); done

umask 022
mkdir -p "$home"/{munge,state,spool,log}
chmod 700 "$home/munge"
chmod 711 "$home"

# A key and a socket of our own: jobs are believed because they know the key.
key=$home/munge/key
(umask 077 && head -c 128 /dev/urandom >"$key")
chmod 755 "$home/munge"
munged --force --key-file="$key" --socket="$home/munge/socket" --pid-file="$home/munge/pid" \
  --seed-file="$home/munge/seed" --log-file="$home/log/munged.log" >&2

cat >"$SLURM_CONF" <<CONF
ClusterName=spheresweep
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$home/munge/socket
StateSaveLocation=$home/state
SlurmdSpoolDir=$home/spool
SlurmctldPidFile=$home/slurmctld.pid
SlurmdPidFile=$home/slurmd.pid
SlurmctldLogFile=$home/log/slurmctld.log
SlurmdLogFile=$home/log/slurmd.log
# No cgroups and no MPI on a test machine; a signalled job has five seconds to tidy up.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
KillWait=5
# One job may take part of the cores; a node that went away comes back by itself.
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) RealMemory=$(free -m | awk '/^Mem:/ {print int($2 * 0.9)}') State=UNKNOWN
PartitionName=debug Nodes=$node Default=YES MaxTime=INFINITE State=UP
CONF

slurmctld -f "$SLURM_CONF" >&2
slurmd -f "$SLURM_CONF" >&2

for _ in {1..120}; do
  if node_is_up; then
    echo "export SLURM_CONF=$SLURM_CONF"
    exit 0
  fi
  sleep 0.5
done
echo "Slurm did not come up within a minute; its logs are in $home/log:" >&2
tail -n 5 "$home"/log/*.log >&2 || true
exit 1
