// How many processors this process may use.
#pragma once

#include <string>

namespace eigenfeat {

// Those that it may run on (sched_setaffinity, taskset), at most what the CPU quota of its control
// group pays for, rounded up. At least 1. Affinity is looked up at each call, the quota at the first.
int available_processors();

// The quota in processors of the group that `membership` (/proc/self/cgroup) names below `root`
// (/sys/fs/cgroup), the least of it and its ancestors, in version 1 or 2 of control groups; 0 where
// there is none.
double processor_quota(const std::string& membership, const std::string& root);

}  // namespace eigenfeat
