#!/usr/bin/env bash
# The paper's phase diagram from start to figure, on this machine: price it, compute it, check it, draw it.
#
#   workflows/phase_diagram.sh                                        SA in full: 1.1 million cells
#   workflows/phase_diagram.sh grid.seed=64 'grid.d=[2, 8, 32]'       fewer seeds, three panels
#   workflows/phase_diagram.sh experiment=paper_phase_diagram_usa     USA
#
# Arguments are those of `spheresweep run`. The dataset is $DATASET, by default runs/NAME_OF_THE_EXPERIMENT.zarr.
# Stopped in the middle it goes on from there when it is started again with the same arguments.
set -euo pipefail
cd "$(dirname "$0")/.."

spheresweep=${SPHERESWEEP:-.venv/bin/spheresweep}
if ! [ -x "$spheresweep" ]; then make setup; fi

experiment=paper_phase_diagram
for argument in "$@"; do
  case $argument in experiment=*) experiment=${argument#experiment=} ;; esac
done
dataset=${DATASET:-runs/$experiment.zarr}
overrides=("experiment=$experiment" "store.path=$dataset" "$@")

"$spheresweep" plan "${overrides[@]}"
"$spheresweep" run "${overrides[@]}"
"$spheresweep" validate "$dataset"
"$spheresweep" figures "$dataset" phase_diagram
