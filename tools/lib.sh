# shellcheck shell=bash disable=SC2034
# Set-up that tools/quickstart and tools/test share: stages with their times, Debian packages, the CMake build.
# Source it after `set -euo pipefail`. What is built, and what is done with it, is left to those scripts.

caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit
export LC_ALL=C.UTF-8  # the same messages, and the same number formats, on every machine

# What the program needs to be built, and its pictures to be drawn. Names that Debian 12 and 13 and Ubuntu 24.04 share.
build_packages=(g++ cmake ninja-build libhwy-dev libyaml-cpp-dev libspdlog-dev libcli11-dev nlohmann-json3-dev
  librandom123-dev libssl-dev python3 python3-matplotlib)
test_packages=(catch2 libeigen3-dev python3-plotly openmpi-bin parallel)
# A browser for the tests of pages. Ubuntu has it as a snap only, which needs a running snapd: there those tests are skipped unless one is installed.
if (. /etc/os-release && [[ $ID == debian ]]) 2>/dev/null; then test_packages+=(chromium); fi
# A real scheduler for tests/cluster. Its packages start services while they are installed, which fails where there is no init (a container, a
# chroot) and leaves dpkg unfinished: so only on demand. Where they are missing those tests are skipped.
scheduler_packages=(slurm-wlm munge)

# ---- Options that both have. The script defines `usage`, and `own_option FLAG`: is this flag one of its own? ----

install=yes jobs=''
parse_options() {
  while [[ $# -gt 0 ]]; do
    case $1 in
      -h | --help) usage; exit 0 ;;
      --no-install) install='' ;;
      --jobs)
        [[ ${2:-} =~ ^[1-9][0-9]{0,3}$ ]] || usage_error "--jobs needs a number of at least 1"
        jobs=$2
        shift
        ;;
      *) own_option "$1" || usage_error "unknown argument '$1' (see --help)" ;;
    esac
    shift
  done
  jobs=${jobs:-$(build_jobs)}
}

usage_error() {
  echo "tools/$(basename "$0"): $1" >&2
  exit 2
}

# ---- Stages: one line each, with the time that it took; everything else goes to $log ----

log=/dev/null
stage_name='' stage_start=0

start_log() {  # start_log FILE
  log=$root/$1
  mkdir -p "$(dirname "$log")"
  : >"$log"
  trap 'on_exit $?' EXIT
}

stage() {  # stage NAME: what follows, until `done_stage`
  stage_name=$1 stage_start=$SECONDS
  printf '  %-24s' "$1"
  printf '\n==== %s\n' "$1" >>"$log"
}

done_stage() {  # done_stage [NOTE]
  printf '%4d s%s\n' $((SECONDS - stage_start)) "${1:+   $1}"
  stage_name=''
}

logged() {  # logged COMMAND...: its output goes to the log
  printf '+ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null
}

die() {
  if [[ $stage_name ]]; then echo "failed"; fi
  stage_name=''
  printf '%s\n' "$@" >&2
  exit 1
}

on_exit() {
  if [[ $1 -ne 0 && $stage_name ]]; then
    printf 'failed after %d s. Its last lines in the log:\n\n' $((SECONDS - stage_start)) >&2
    awk '/^==== /{text = ""; next} {text = text "    " $0 "\n"} END {printf "%s", text}' "$log" | tail -n 25 >&2
    printf '\nThe whole log: %s\n' "$log" >&2
  fi
}

# ---- Packages ----

missing_packages() {  # those of the arguments that are not installed
  local package state
  for package; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || true
    [[ $state == installed ]] || printf '%s ' "$package"
  done
}

install_packages() {  # install_packages PACKAGE...: only what is missing; apt is not asked when nothing is
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "There is no apt-get here. Install what these Debian packages stand for, then add --no-install:" "  $*"
  fi
  local missing as_root=()
  read -ra missing <<<"$(missing_packages "$@")"
  if [[ ${#missing[@]} -eq 0 ]]; then
    packages_note="all there"
    return
  fi
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null || ! { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
      die "Packages are missing, and installing them needs root. Run this once as root, then try again:" \
        "  apt-get install --no-install-recommends ${missing[*]}"
    fi
    sudo -v  # asks for the password on the terminal, before the output goes to the log
    as_root=(sudo)
  fi
  local apt=(${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive
    apt-get -q -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3)
  logged "${apt[@]}" update
  logged "${apt[@]}" install -y --no-install-recommends "${missing[@]}"
  packages_note="installed ${#missing[@]}"
}

# ---- Build ----

# Compilers at once: one per processor, and no more than one per GB of free memory (with less the machine swaps).
build_jobs() {
  local jobs free
  jobs=$(nproc 2>/dev/null || echo 1)
  free=$(awk '/^MemAvailable:/ {print int($2 / 1000000)}' /proc/meminfo 2>/dev/null || true)
  if [[ $free && $free -lt $jobs ]]; then jobs=$((free > 0 ? free : 1)); fi
  echo "$jobs"
}

configure() {  # configure BUILD_DIR CMAKE_OPTION...
  local dir=$1
  shift
  # The environment names the generator, so that a tree which was configured with another one is taken as it is.
  CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja} logged cmake -S "$root" -B "$dir" "$@"
}

build() {  # build BUILD_DIR [TARGET...]
  local dir=$1
  shift
  logged cmake --build "$dir" --parallel "$jobs" ${1:+--target "$@"}
}
