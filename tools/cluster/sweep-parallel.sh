#!/bin/sh
# A sweep by GNU parallel, on this machine or, with --sshlogin, on several that share the folder:
#   tools/cluster/sweep-parallel.sh 32 sweep.yaml /shared/out
#   PARALLEL_OPTIONS='--sshlogin a,b,c --workdir .' tools/cluster/sweep-parallel.sh 32 sweep.yaml /shared/out
# Shards that fail are tried again twice; the same line again does only what is missing.
set -eu
shards=${1:?usage: sweep-parallel.sh SHARDS SWEEP.yaml FOLDER}
file=${2:?usage: sweep-parallel.sh SHARDS SWEEP.yaml FOLDER}
folder=${3:?usage: sweep-parallel.sh SHARDS SWEEP.yaml FOLDER}
scaletrace=${SCALETRACE:-scaletrace}
# shellcheck disable=SC2086
seq "$shards" | parallel ${PARALLEL_OPTIONS:-} --retries 3 "$scaletrace" sweep "$file" --out "$folder" --shard "{}/$shards" -j "${THREADS:-1}" --quiet
"$scaletrace" sweep merge "$folder"
