// Processors that a process may use: CPU affinity, and quotas of cgroups of both versions.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "eigenfeat/parallel.hpp"
#include "eigenfeat/processors.hpp"

#ifdef __linux__
#include <sched.h>
#endif

using namespace eigenfeat;

namespace {

// A temporary folder with files of cgroups.
class Groups {
 public:
  Groups() {
    std::string name = (std::filesystem::temp_directory_path() / "groups-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  ~Groups() { std::filesystem::remove_all(folder_); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = folder_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  double quota(const std::string& membership) const {
    write("membership", membership);
    return processor_quota(folder_ + "/membership", folder_);
  }

 private:
  std::string folder_;
};

}  // namespace

TEST_CASE("without cgroups there is no quota") {
  CHECK(processor_quota("/nonexistent/membership", "/nonexistent") == 0);
  const Groups groups;
  CHECK(groups.quota("") == 0);
  CHECK(groups.quota("0::/\n") == 0);
  CHECK(groups.quota("nonsense\n:\n::\n0:\n") == 0);
}

TEST_CASE("cgroup version 2: the smallest quota of a group and its parents") {
  const Groups groups;
  groups.write("cpu.max", "max 100000\n");
  CHECK(groups.quota("0::/a/b\n") == 0);
  groups.write("a/b/cpu.max", "250000 100000\n");
  CHECK(groups.quota("0::/a/b\n") == 2.5);
  CHECK(groups.quota("0::/a\n") == 0);
  groups.write("a/cpu.max", "50000 100000\n");
  CHECK(groups.quota("0::/a/b\n") == 0.5);
  groups.write("a/cpu.max", "rubbish\n");
  CHECK(groups.quota("0::/a/b\n") == 2.5);
  groups.write("cpu.max", "150000 100000\n");  // in a container the mount is its group
  CHECK(groups.quota("0::/named/as/outside\n") == 1.5);
}

TEST_CASE("cgroup version 1: the cpu controller among others") {
  const Groups groups;
  groups.write("cpu/a/cpu.cfs_quota_us", "-1\n");
  groups.write("cpu/a/cpu.cfs_period_us", "100000\n");
  const std::string membership = "5:memory:/m\n3:cpuset:/a\n4:cpu,cpuacct:/a\n0::/\n";
  CHECK(groups.quota(membership) == 0);
  groups.write("cpu/a/cpu.cfs_quota_us", "300000\n");
  CHECK(groups.quota(membership) == 3);
  CHECK(groups.quota("4:cpuset:/a\n") == 0);
}

#ifdef __linux__
TEST_CASE("a thread that is bound to one processor counts one processor") {
  CHECK(available_processors() >= 1);
  int bound = 0, threads = 0;
  std::thread([&] {
    cpu_set_t all, one;
    REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    std::size_t first = 0;
    while (!CPU_ISSET(first, &all)) ++first;
    CPU_SET(first, &one);
    REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
    bound = available_processors();
    threads = default_threads();
  }).join();
  CHECK(bound == 1);
  if (std::getenv("OMP_NUM_THREADS") == nullptr) CHECK(threads == 1);
}
#endif
