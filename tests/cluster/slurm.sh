#!/usr/bin/env bash
# A Slurm of one node, this one, for a test: daemons of its own, all files in FOLDER, no system service touched.
#   slurm.sh start FOLDER      exit 0: SLURM_CONF=FOLDER/slurm.conf works; 77: cannot be had here, the last line says why
#   slurm.sh stop FOLDER
set -u
folder=${2:?usage: slurm.sh start|stop FOLDER}

skip() {
  echo "no Slurm here: $*"
  exit 77
}

stop() {
  local name pid
  for name in slurmd slurmctld munged; do
    [[ -f $folder/$name.pid ]] || continue
    pid=$(cat "$folder/$name.pid")
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
    done
    kill -9 "$pid" 2>/dev/null || true
  done
}

free_port() {
  python3 -c 'import socket; s = socket.socket(); s.bind(("", 0)); print(s.getsockname()[1])'
}

if [[ $1 == stop ]]; then
  stop
  exit 0
fi

PATH=$PATH:/usr/sbin:/sbin
[[ $(id -u) -eq 0 ]] || skip "its daemons need root"
for tool in munged slurmctld slurmd sbatch srun scontrol squeue sinfo; do
  command -v "$tool" >/dev/null || skip "$tool is not installed (packages slurm-wlm and munge)"
done

mkdir -p "$folder"/{munge,state,spool}
chmod 755 "$folder"
# Munge insists that nobody else can write to what is above its key and its socket: a folder in a sticky /tmp is no such place, hence --force.
dd if=/dev/urandom of="$folder/munge/key" bs=1024 count=1 2>/dev/null
chown -R root:root "$folder/munge"
chmod 400 "$folder/munge/key"
munged --force --foreground --num-threads=1 --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
  --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" >"$folder/munge/out" 2>&1 &
echo $! >"$folder/munged.pid"
for _ in $(seq 50); do
  [[ -S $folder/munge/socket ]] && break
  sleep 0.1
done
[[ -S $folder/munge/socket ]] || skip "munged does not start: $(tail -n 1 "$folder/munge/out")"

host=$(hostname -s)
cat >"$folder/slurm.conf" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld-own.pid
SlurmdPidFile=$folder/slurmd-own.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
ProctrackType=proctrack/pgid
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
MinJobAge=300
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=4 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
END
# From 23.02 on slurmd wants control groups even where no plugin uses them, unless this says not to; before, it does not know the word.
version=$(slurmd -V | sed 's/[^0-9]*\([0-9]*\).*/\1/')
[[ $version -lt 23 ]] || echo CgroupPlugin=disabled >"$folder/cgroup.conf"
export SLURM_CONF=$folder/slurm.conf
slurmctld -D -c >"$folder/slurmctld.out" 2>&1 &
echo $! >"$folder/slurmctld.pid"
slurmd -D -N "$host" >"$folder/slurmd.out" 2>&1 &
echo $! >"$folder/slurmd.pid"
for _ in $(seq 150); do
  [[ $(sinfo --noheader --format=%T 2>/dev/null) == idle* ]] && exit 0
  sleep 0.2
done
tail -n 5 "$folder/slurmctld.out" "$folder/slurmd.out" "$folder/slurmctld.log" "$folder/slurmd.log" 2>/dev/null
stop
skip "its daemons do not come up"
