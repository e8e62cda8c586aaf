# A Slurm of one's own on this machine: munged, slurmctld and two slurmd in a folder, on ports of their own, without systemd.
# Sourced by `run`. Everything lives in $cluster; `cluster_stop` ends what `cluster_start` began, by process number.

cluster_config() {
    mkdir -p "$cluster"/{state,node1,node2}
    head -c 1024 /dev/urandom >"$cluster/munge.key"
    chmod 0400 "$cluster/munge.key"
    cat >"$cluster/slurm.conf" <<CONF
ClusterName=windvane-test
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$((port))
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$cluster/munge.socket
StateSaveLocation=$cluster/state
SlurmdSpoolDir=$cluster/%n
SlurmctldPidFile=$cluster/slurmctld.pid
SlurmdPidFile=$cluster/slurmd-%n.pid
SlurmctldLogFile=$cluster/slurmctld.log
SlurmdLogFile=$cluster/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmdTimeout=10
KillWait=10
SchedulerParameters=sched_interval=3,batch_sched_delay=1,sched_min_interval=0
SlurmdParameters=config_overrides
NodeName=node1 NodeAddr=127.0.0.1 NodeHostname=$(hostname -s) Port=$((port + 1)) CPUs=2 RealMemory=1000
NodeName=node2 NodeAddr=127.0.0.1 NodeHostname=$(hostname -s) Port=$((port + 2)) CPUs=2 RealMemory=1000
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=60 State=UP
CONF
    export SLURM_CONF="$cluster/slurm.conf"
}

# Starts a daemon in the background and remembers its number.
daemon() {
    local name=$1
    shift
    "$@" >>"$cluster/$name.out" 2>&1 &
    echo $! >"$cluster/$name.daemon"
}

node_start() { daemon "slurmd-$1" slurmd -D -N "$1"; }

cluster_start() {
    cluster_config
    daemon munged munged --foreground --force --key-file="$cluster/munge.key" --socket="$cluster/munge.socket" \
        --pid-file="$cluster/munged.pid" --log-file="$cluster/munged.log" --seed-file="$cluster/munged.seed"
    wait_for "munged answers" 20 munge --socket="$cluster/munge.socket" --no-input --output=/dev/null
    daemon slurmctld slurmctld -D -i
    node_start node1
    node_start node2
    wait_for "both nodes are idle" 60 nodes_idle
}

nodes_idle() { [ "$(sinfo --noheader --Node --format=%t 2>/dev/null | grep -cx idle)" = 2 ]; }

cluster_stop() {
    if [ -n "${SLURM_CONF:-}" ] && [ -e "$cluster/slurmctld.daemon" ]; then
        scancel --quiet --full --signal=KILL --user="$(id -un)" 2>/dev/null
        scancel --quiet --user="$(id -un)" 2>/dev/null
        sleep 1
    fi
    local name pid
    for name in slurmd-node1 slurmd-node2 slurmctld munged; do
        pid=$(cat "$cluster/$name.daemon" 2>/dev/null) || continue
        kill "$pid" 2>/dev/null
        for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
        kill -KILL "$pid" 2>/dev/null
    done
    return 0
}

# wait_for WHAT SECONDS COMMAND...: until the command succeeds.
wait_for() {
    local what=$1 end=$((SECONDS + $2))
    shift 2
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ]; then
            echo "FAILED: waited in vain until $what" >&2
            return 1
        fi
        sleep 0.2
    done
}
