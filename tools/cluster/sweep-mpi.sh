#!/bin/sh
# A sweep under any MPI launcher, a shard a process: the program does not use MPI, it only reads which process it is.
#   tools/cluster/sweep-mpi.sh 64 sweep.yaml /shared/out            64 processes, then the results together
#   MPIRUN='mpirun --hostfile hosts --map-by slot' tools/cluster/sweep-mpi.sh ...
# The same line again goes on after any interruption. Open MPI, MPICH, Intel MPI and srun all set what `--shard auto` reads.
set -eu
processes=${1:?usage: sweep-mpi.sh PROCESSES SWEEP.yaml FOLDER}
file=${2:?usage: sweep-mpi.sh PROCESSES SWEEP.yaml FOLDER}
folder=${3:?usage: sweep-mpi.sh PROCESSES SWEEP.yaml FOLDER}
scaletrace=${SCALETRACE:-scaletrace}
${MPIRUN:-mpirun} -n "$processes" "$scaletrace" sweep "$file" --out "$folder" --shard auto -j "${THREADS:-1}"
"$scaletrace" sweep merge "$folder"
