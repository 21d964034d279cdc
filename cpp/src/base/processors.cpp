#include "eigenfeat/processors.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <new>
#include <thread>

#ifdef __linux__
#include <sched.h>
#endif

namespace eigenfeat {
namespace {

int processors_by_affinity() {
#ifdef __linux__
  for (int room = 1024; room <= 1 << 20; room *= 2) {  // the kernel refuses a set that is too small
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(room));
    if (set == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(room));
    const bool known = sched_getaffinity(0, size, set) == 0;
    const int count = known ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (known) return count;
  }
#endif
  return static_cast<int>(std::thread::hardware_concurrency());
}

// quota / period; 0 where a file is missing, or has no limit ("max" or -1).
double ratio(std::istream& quota_file, std::istream& period_file) {
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period)) return 0;
  return quota > 0 && period > 0 ? quota / period : 0;
}

double quota_in(const std::string& folder, bool version_2) {
  if (version_2) {
    std::ifstream both(folder + "/cpu.max");
    return ratio(both, both);
  }
  std::ifstream quota(folder + "/cpu.cfs_quota_us"), period(folder + "/cpu.cfs_period_us");
  return ratio(quota, period);
}

double smaller(double a, double b) {
  return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b);
}

// The folder of the group and all its parents. In a container, the name of the group may be that of
// the host, and only the folder of the mount exists.
double least_quota(const std::string& mount, std::string group, bool version_2) {
  double least = 0;
  for (;;) {
    least = smaller(least, quota_in(mount + group, version_2));
    const std::size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return least;
    group.erase(slash);
  }
}

}  // namespace

double processor_quota(const std::string& membership, const std::string& root) {
  double least = 0;
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/group", "0::/group"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      least = smaller(least, least_quota(root, group, true));
      least = smaller(least, least_quota(root + "/unified", group, true));
    } else if (controllers.find(",cpu,") != std::string::npos) {
      least = smaller(least, least_quota(root + "/cpu", group, false));
    }
  }
  return least;
}

int available_processors() {
  // Read once: quotas hardly ever change, and reading files takes longer than many parallel
  // regions. If memory is exhausted, the quota is ignored.
  static const double quota = [] {
    try {
      return processor_quota("/proc/self/cgroup", "/sys/fs/cgroup");
    } catch (const std::bad_alloc&) {
      return 0.0;
    }
  }();
  int count = std::max(1, processors_by_affinity());
  if (quota > 0) count = std::min(count, std::max(1, static_cast<int>(std::ceil(quota))));
  return count;
}

}  // namespace eigenfeat
