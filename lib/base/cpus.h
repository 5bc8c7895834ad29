// How many processors this process may use: what a program starts threads for, unless told otherwise.
#ifndef SCALETRACE_BASE_CPUS_H_
#define SCALETRACE_BASE_CPUS_H_

#include <string>

namespace scaletrace {

// The least of the processors that the process may be scheduled on (taskset, a scheduler's binding) and the quota of its control groups, version 1 or 2, rounded
// up (containers). At least 1.
int UsableCpus();

// The most threads that a user may ask for.
inline constexpr int kMostThreads = 4096;

// The quota part of it, for tests: what the control groups under `mount` (/sys/fs/cgroup) allow to a process whose /proc/self/cgroup has the text `membership`.
// Groups that `mount` does not show, as in a container, are looked for at its top. 0: no limit.
double CgroupCpus(const std::string& membership, const std::string& mount);

}  // namespace scaletrace

#endif  // SCALETRACE_BASE_CPUS_H_
