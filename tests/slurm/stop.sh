#!/usr/bin/env bash
# End the Slurm that start.sh started, by the process ids it wrote down, and remove its folder.
set -euo pipefail

home=${SPHERESWEEP_SLURM:-/tmp/spheresweep-slurm}
for pidfile in "$home/slurmd.pid" "$home/slurmctld.pid" "$home/munge/pid"; do
  if [ -e "$pidfile" ] && pid=$(cat "$pidfile") && kill "$pid" 2>/dev/null; then
    for _ in {1..50}; do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  fi
done
rm -rf "$home"
