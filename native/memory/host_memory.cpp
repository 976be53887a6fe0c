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
class LeastBound {
 public:
  void Add(std::optional<uint64_t> bytes, const std::string& name) {
    if (bytes && (!least_ || *bytes < least_->available_bytes)) least_ = HostMemory{*bytes, name};
  }
  const std::optional<HostMemory>& get() const { return least_; }

 private:
  std::optional<HostMemory> least_;
};

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

void AddCgroupBounds(const HostMemorySources& sources, const CgroupFiles& files, LeastBound& bounds) {
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
      if (limit) bounds.Add(Left(*limit, CgroupUsedBytes(sources, folder, files).value_or(0)), limit_path);
    }
  }
}

// RLIMIT_AS bounds addresses, not memory; what is mapped already is the first number of statm, in pages.
void AddAddressSpaceBound(const HostMemorySources& sources, LeastBound& bounds) {
  if (!sources.address_space_limit_bytes) return;
  const auto statm = sources.read_file("/proc/self/statm");
  const auto pages = statm ? ParseCgroupBytes(statm->substr(0, statm->find(' '))) : std::nullopt;
  bounds.Add(Left(*sources.address_space_limit_bytes, pages.value_or(0) * sources.page_bytes),
             "the address space limit (RLIMIT_AS)");
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
  LeastBound bounds;
  if (const auto meminfo = sources.read_file("/proc/meminfo")) {
    bounds.Add(ParseMeminfoAvailable(*meminfo), "MemAvailable of /proc/meminfo");
  }
  AddCgroupBounds(sources, FilesOf(CgroupVersion::kV2), bounds);
  AddCgroupBounds(sources, FilesOf(CgroupVersion::kV1), bounds);
  AddAddressSpaceBound(sources, bounds);
  if (!bounds.get()) {
    Throw(StatusCode::kIoError, "the free memory is unknown: neither /proc/meminfo nor a control group tells it; set ",
          "engine.dynamic_batching.num_blocks");
  }
  return *bounds.get();
}

}  // namespace oga
