#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/file.h"
#include "base/number.h"

namespace scaletrace {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 16;

std::string Read(const std::string& path) {
  try {
    return ReadFile(path, kMaxBytes);
  } catch (const IoError&) {
    return "";
  }
}

// The first words of a text.
std::optional<double> Number(std::string_view& text) {
  while (!text.empty() && (text[0] == ' ' || text[0] == '\n')) text.remove_prefix(1);
  const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
  const auto number = ReadDouble(text.substr(0, end));
  text.remove_prefix(end);
  return number;
}

double Least(double a, double b) { return a == 0 ? b : b == 0 ? a : std::min(a, b); }

// Version 2, "max 100000" or "150000 100000" in cpu.max; version 1, two files, -1 being no quota.
double QuotaOf(const std::string& folder) {
  const std::string max = Read(folder + "/cpu.max");
  std::string_view text = max;
  std::optional<double> quota = Number(text), period = Number(text);
  if (max.empty()) {
    const std::string quota_text = Read(folder + "/cpu.cfs_quota_us"), period_text = Read(folder + "/cpu.cfs_period_us");
    text = quota_text;
    quota = Number(text);
    text = period_text;
    period = Number(text);
  }
  return quota && period && *quota > 0 && *period > 0 ? *quota / *period : 0;
}

// The least quota of `group` and of those around it.
double QuotaUpwards(const std::string& mount, std::string group) {
  double least = QuotaOf(mount);
  while (group.size() > 1) {
    least = Least(least, QuotaOf(mount + group));
    group.resize(group.rfind('/'));
  }
  return least;
}

}  // namespace

double CgroupCpus(const std::string& membership, const std::string& mount) {
  double least = 0;
  std::string_view rest = membership;
  while (!rest.empty()) {  // lines "0::/group" (version 2) and "4:cpu,cpuacct:/group" (version 1)
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || line.size() < second + 2 || line[second + 1] != '/') continue;
    const std::string controllers(line.substr(first + 1, second - first - 1)), group(line.substr(second + 1));
    if (controllers.empty()) least = Least(least, QuotaUpwards(mount, group));
    if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      least = Least(least, Least(QuotaUpwards(mount + "/" + controllers, group), QuotaUpwards(mount + "/cpu", group)));
    }
  }
  return least;
}

int UsableCpus() {
  int cpus = 0;
  // A machine may have more processors than a cpu_set_t holds: then the call fails, and a larger set is tried.
  for (int most = 1024; cpus == 0 && most <= 1 << 20; most *= 4) {
    cpu_set_t* set = CPU_ALLOC(most);
    if (set == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(most);
    CPU_ZERO_S(size, set);
    if (::sched_getaffinity(0, size, set) == 0) cpus = CPU_COUNT_S(size, set);
    CPU_FREE(set);
  }
  if (cpus == 0) cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  const double quota = CgroupCpus(Read("/proc/self/cgroup"), "/sys/fs/cgroup");
  if (quota > 0) cpus = std::min(cpus, static_cast<int>(std::ceil(std::min(quota, 1e6))));
  return std::max(cpus, 1);
}

}  // namespace scaletrace
