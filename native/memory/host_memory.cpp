#include "memory/host_memory.h"

#include <fstream>
#include <iterator>

#include "base/error.h"
#include "base/platform_process.h"

namespace oga {

namespace {

std::optional<std::string> ReadSystemFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (file.bad()) return std::nullopt;
  return text;
}

// Keeps the least bound and its name.
void Bound(HostMemory& memory, std::optional<uint64_t> bytes, const std::string& name) {
  if (!bytes || *bytes >= memory.available_bytes) return;
  memory.available_bytes = *bytes;
  memory.bound = name;
}

uint64_t Left(uint64_t limit, uint64_t used) { return limit > used ? limit - used : 0; }

// The names of one version's files.
struct CgroupFiles {
  CgroupVersion version;
  std::vector<const char*> limits;
  const char* usage;
  const char* inactive_file_field;
};

const CgroupFiles& FilesOf(CgroupVersion version) {
  // Above memory.high the kernel slows a group down until it is of no use, so that bound is as real as the hard one.
  static const CgroupFiles kV2Files{
      CgroupVersion::kV2, {"memory.max", "memory.high"}, "memory.current", "inactive_file"};
  static const CgroupFiles kV1Files{
      CgroupVersion::kV1, {"memory.limit_in_bytes"}, "memory.usage_in_bytes", "total_inactive_file"};
  return version == CgroupVersion::kV2 ? kV2Files : kV1Files;
}

// Files that the group has cached and not used lately count as used, and the kernel drops them before it refuses.
std::optional<uint64_t> CgroupUsedBytes(const HostMemorySources& sources, const std::string& folder,
                                        const CgroupFiles& files) {
  const auto usage_text = sources.read_file(folder + "/" + files.usage);
  const auto usage = usage_text ? ParseCgroupBytes(*usage_text) : std::nullopt;
  if (!usage) return std::nullopt;
  const auto stat = sources.read_file(folder + "/memory.stat");
  const auto reclaimable = stat ? ParseCgroupStat(*stat, files.inactive_file_field) : std::nullopt;
  return Left(*usage, reclaimable.value_or(0));
}

void AddCgroupBounds(const HostMemorySources& sources, const CgroupFiles& files, HostMemory& memory) {
  const auto mountinfo = sources.read_file("/proc/self/mountinfo");
  const auto groups = sources.read_file("/proc/self/cgroup");
  if (!mountinfo || !groups) return;
  const auto mount = ParseCgroupMount(*mountinfo, files.version);
  const auto path = ParseCgroupPath(*groups, files.version);
  if (!mount || !path) return;
  for (const std::string& folder : CgroupFolders(*mount, *path)) {
    for (const char* limit_name : files.limits) {
      const std::string limit_path = folder + "/" + limit_name;
      const auto text = sources.read_file(limit_path);
      const auto limit = text ? ParseCgroupBytes(*text) : std::nullopt;
      if (limit) Bound(memory, Left(*limit, CgroupUsedBytes(sources, folder, files).value_or(0)), limit_path);
    }
  }
}

// What is mapped already is the first number of statm, in pages.
uint64_t AddressesLeft(const HostMemorySources& sources) {
  if (!sources.address_space_limit_bytes) return HostMemory::kUnbounded;
  const auto statm = sources.read_file("/proc/self/statm");
  const auto pages = statm ? ParseCgroupBytes(statm->substr(0, statm->find(' '))) : std::nullopt;
  return Left(*sources.address_space_limit_bytes, pages.value_or(0) * sources.page_bytes);
}

}  // namespace

HostMemory ReadHostMemory() {
  HostMemorySources sources;
  sources.read_file = ReadSystemFile;
  sources.page_bytes = platform::PageBytes();
  sources.address_space_limit_bytes = platform::AddressSpaceLimit();
  return ReadHostMemory(sources);
}

HostMemory ReadHostMemory(const HostMemorySources& sources) {
  HostMemory memory;
  if (const auto meminfo = sources.read_file("/proc/meminfo")) {
    Bound(memory, ParseMeminfoAvailable(*meminfo), "MemAvailable of /proc/meminfo");
  }
  AddCgroupBounds(sources, FilesOf(CgroupVersion::kV2), memory);
  AddCgroupBounds(sources, FilesOf(CgroupVersion::kV1), memory);
  memory.addresses_bytes = AddressesLeft(sources);
  if (memory.available_bytes == HostMemory::kUnbounded && memory.addresses_bytes == HostMemory::kUnbounded) {
    Throw(StatusCode::kIoError, "the free memory is unknown: neither /proc/meminfo nor a control group tells it; set ",
          "engine.dynamic_batching.num_blocks, or OGA_MEMORY_LIMIT");
  }
  return memory;
}

}  // namespace oga
