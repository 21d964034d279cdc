// Number of processors that this process may use.
#pragma once

#include <string>

namespace eigenfeat {

// The processors of the process's affinity mask (sched_setaffinity, taskset), at most the CPU quota
// of its control group, rounded up; at least 1. Every call reads the mask; the first call reads the
// quota.
int available_processors();

// The quota, in processors, of the group that `membership` (/proc/self/cgroup) names below `root`
// (/sys/fs/cgroup): the smallest quota of the group and its ancestors, in version 1 or 2 of control
// groups; 0 without a quota.
double processor_quota(const std::string& membership, const std::string& root);

}  // namespace eigenfeat
