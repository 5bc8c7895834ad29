// The processors that a process may use, from made-up control groups of both versions.
#include "base/cpus.h"

#include <sched.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"
#include "tests/data/temporary_folder.h"

namespace scaletrace {
namespace {

void Write(const std::string& path, const std::string& text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST_CASE("A quota of control groups version 2 is the least on the way up") {
  const TemporaryFolder folder;
  const std::string mount = folder.path();
  CHECK(CgroupCpus("0::/a/b\n", mount) == 0);
  Write(mount + "/a/b/cpu.max", "max 100000\n");
  CHECK(CgroupCpus("0::/a/b\n", mount) == 0);
  Write(mount + "/a/cpu.max", "150000 100000\n");
  CHECK(CgroupCpus("0::/a/b\n", mount) == 1.5);
  Write(mount + "/a/b/cpu.max", "50000 100000\n");
  CHECK(CgroupCpus("0::/a/b\n", mount) == 0.5);
  CHECK(CgroupCpus("0::/elsewhere\n", mount) == 0);
  Write(mount + "/cpu.max", "300000 100000\n");  // a container sees its own group at the top
  CHECK(CgroupCpus("0::/elsewhere\n", mount) == 3);
  CHECK(CgroupCpus("0::/\n", mount) == 3);
}

TEST_CASE("A quota of control groups version 1 is found under the controller's name") {
  const TemporaryFolder folder;
  const std::string mount = folder.path();
  Write(mount + "/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  Write(mount + "/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  const std::string membership = "5:memory:/other\n4:cpu,cpuacct:/job\n3:cpuset:/\n";
  CHECK(CgroupCpus(membership, mount) == 0);
  Write(mount + "/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
  CHECK(CgroupCpus(membership, mount) == 4);
  CHECK(CgroupCpus("nonsense\n::\n0:\n", mount) == 0);
  CHECK(CgroupCpus("", mount) == 0);
}

TEST_CASE("A process that is bound to one processor has one") {
  CHECK(UsableCpus() >= 1);
  cpu_set_t before;
  REQUIRE(sched_getaffinity(0, sizeof(before), &before) == 0);
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
  CHECK(UsableCpus() == 1);
  sched_setaffinity(0, sizeof(before), &before);
}

}  // namespace
}  // namespace scaletrace
