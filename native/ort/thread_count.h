// How many threads the runtime's intra-op pool gets: what this process may really use, not what the machine has.
#pragma once

#include <optional>
#include <string>

namespace oga::ort {

// OGA_NUM_THREADS when it is set, else `configured` when it is not 0, else the processors of the affinity mask, bounded
// by the cgroup's CPU quota rounded up. Throws Error{kInvalidArgument} for an OGA_NUM_THREADS that is not a number from
// 1 to 1024.
int ChooseThreadCount(int configured);

// Parses a value of OGA_NUM_THREADS.
int ParseThreadCount(const std::string& text);

// The tightest CPU quota, in processors, of the cgroup that `membership_file` (/proc/self/cgroup) names and of the
// groups above it under `cgroup_root` (/sys/fs/cgroup); empty when none is set. Knows cgroup versions 1 and 2.
std::optional<double> CgroupCpuQuota(const std::string& membership_file, const std::string& cgroup_root);

}  // namespace oga::ort
