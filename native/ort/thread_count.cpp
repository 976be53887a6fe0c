#include "ort/thread_count.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "base/platform_process.h"

namespace oga::ort {

namespace {

constexpr int kMaxThreads = 1024;

std::optional<int64_t> ParseInteger(const std::string& text) {
  int64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> Quota(const std::string& quota, const std::string& period) {
  const auto quota_us = ParseInteger(quota);
  const auto period_us = ParseInteger(period);
  if (!quota_us || !period_us || *quota_us <= 0 || *period_us <= 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

// Version 2: one file "quota period", where quota may be "max". Version 1: a file each, quota -1 for none.
std::optional<double> QuotaOfGroup(const std::string& folder) {
  std::string quota;
  std::string period;
  if (std::ifstream(folder + "/cpu.max") >> quota >> period) return Quota(quota, period);
  std::ifstream(folder + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(folder + "/cpu.cfs_period_us") >> period;
  return Quota(quota, period);
}

// The tightest quota from `group` ("/a/b") up to the root of the hierarchy.
std::optional<double> TightestQuota(const std::string& hierarchy, std::string group) {
  std::optional<double> tightest;
  while (true) {
    if (const auto quota = QuotaOfGroup(hierarchy + group)) tightest = std::min(tightest.value_or(*quota), *quota);
    if (group.empty()) return tightest;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

std::optional<double> CgroupCpuQuota(const std::string& membership_file, const std::string& cgroup_root) {
  std::ifstream membership(membership_file);
  std::optional<double> tightest;
  // Lines are "id:controllers:path"; version 2 has no controllers, version 1 mounts each set of them in its own folder.
  for (std::string line; std::getline(membership, line);) {
    const size_t controllers_at = line.find(':');
    const size_t path_at = line.find(':', controllers_at + 1);
    if (controllers_at == std::string::npos || path_at == std::string::npos) continue;
    const std::string controllers = line.substr(controllers_at + 1, path_at - controllers_at - 1);
    const std::string group = line.substr(path_at + 1) == "/" ? "" : line.substr(path_at + 1);
    std::optional<double> quota;
    if (controllers.empty()) {
      quota = TightestQuota(cgroup_root, group);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      quota = TightestQuota(cgroup_root + "/" + controllers, group);
    }
    if (quota) tightest = std::min(tightest.value_or(*quota), *quota);
  }
  return tightest;
}

int ParseThreadCount(const std::string& text) {
  const auto value = ParseInteger(text);
  if (!value || *value < 1 || *value > kMaxThreads) {
    Throw(StatusCode::kInvalidArgument, Field{"OGA_NUM_THREADS"}, "OGA_NUM_THREADS is \"", text,
          "\"; it must be a whole number from 1 to ", kMaxThreads, ", or not set");
  }
  return static_cast<int>(*value);
}

int ChooseThreadCount(int configured) {
  if (const char* const text = std::getenv("OGA_NUM_THREADS"); text != nullptr && *text != '\0') {
    return ParseThreadCount(text);
  }
  if (configured > 0) return configured;
  int threads = std::min(platform::UsableProcessors(), kMaxThreads);
  if (const auto quota = CgroupCpuQuota("/proc/self/cgroup", "/sys/fs/cgroup")) {
    // An idle fraction of a processor costs more than being throttled now and then.
    threads = std::min(threads, static_cast<int>(std::ceil(std::min<double>(*quota, kMaxThreads))));
  }
  return std::max(threads, 1);
}

}  // namespace oga::ort
