// How much memory this process can really still take: what the machine, its control groups and its own limits leave.
//
// Any thread; every call reads anew. The parsers are pure functions over the text of the kernel's files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace oga {

// Two numbers, since they count different things: memory counts what has been written to, addresses what is mapped. Either
// is kUnbounded when nothing bounds it.
struct HostMemory {
  static constexpr uint64_t kUnbounded = UINT64_MAX;

  uint64_t available_bytes = kUnbounded;
  std::string bound;  // what sets it, for people: "MemAvailable of /proc/meminfo", "/sys/fs/cgroup/x/memory.max"
  uint64_t addresses_bytes = kUnbounded;  // what RLIMIT_AS leaves
};
inline constexpr const char* kAddressSpaceBound = "the address space limit (RLIMIT_AS)";

// The least of all bounds. Throws Error{kIoError} when the system tells none.
HostMemory ReadHostMemory();

// Where the bounds come from; a test gives its own.
struct HostMemorySources {
  std::function<std::optional<std::string>(const std::string& path)> read_file;  // nothing when it cannot be read
  std::optional<uint64_t> address_space_limit_bytes;                             // RLIMIT_AS
  uint64_t page_bytes = 4096;
};
HostMemory ReadHostMemory(const HostMemorySources& sources);

// A line "FIELD: 123 kB" of /proc/meminfo, in bytes.
std::optional<uint64_t> ParseMeminfoField(std::string_view meminfo, std::string_view field);

// MemAvailable, or what old kernels offer in its place (free and file pages).
std::optional<uint64_t> ParseMeminfoAvailable(std::string_view meminfo);

// A file of one number. "max", and the number just below 2^63 by which version 1 says the same, are nothing.
std::optional<uint64_t> ParseCgroupBytes(std::string_view text);

// A line "FIELD 123" of memory.stat.
std::optional<uint64_t> ParseCgroupStat(std::string_view stat, std::string_view field);

enum class CgroupVersion { kV1, kV2 };

// The path of this process in the hierarchy that counts memory, from /proc/self/cgroup.
std::optional<std::string> ParseCgroupPath(std::string_view proc_self_cgroup, CgroupVersion version);

struct CgroupMount {
  std::string root;         // the part of the hierarchy that is mounted: "/" or, in a container, its own group
  std::string mount_point;  // where it is mounted
};

// The mount of that hierarchy, from /proc/self/mountinfo.
std::optional<CgroupMount> ParseCgroupMount(std::string_view mountinfo, CgroupVersion version);

// The folders whose limits bind a process at `path`, innermost first, up to the mount point.
std::vector<std::string> CgroupFolders(const CgroupMount& mount, const std::string& path);

}  // namespace oga
