#include <charconv>

#include "memory/host_memory.h"

namespace oga {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::optional<uint64_t> ParseNumber(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool HasItem(std::string_view comma_list, std::string_view item) {
  for (const std::string_view part : Split(comma_list, ',')) {
    if (part == item) return true;
  }
  return false;
}

// mountinfo writes a blank in a path as \040, and a tab, a line break and a backslash likewise.
std::string UnescapeOctal(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned code = 0;
    const char* digits = text.data() + i + 1;
    if (text[i] == '\\' && i + 3 < text.size() && std::from_chars(digits, digits + 3, code, 8).ptr == digits + 3) {
      out += static_cast<char>(code);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::optional<uint64_t> ParseMeminfoField(std::string_view meminfo, std::string_view field) {
  for (const std::string_view line : Split(meminfo, '\n')) {
    if (!line.starts_with(field) || line.substr(field.size(), 1) != ":") continue;
    std::string_view value = Trim(line.substr(field.size() + 1));
    if (!value.ends_with("kB")) return std::nullopt;
    value.remove_suffix(2);
    const auto kibibytes = ParseNumber(Trim(value));
    if (!kibibytes || *kibibytes > UINT64_MAX / 1024) return std::nullopt;
    return *kibibytes * 1024;
  }
  return std::nullopt;
}

std::optional<uint64_t> ParseMeminfoAvailable(std::string_view meminfo) {
  if (const auto available = ParseMeminfoField(meminfo, "MemAvailable")) return available;
  const auto free_bytes = ParseMeminfoField(meminfo, "MemFree");
  if (!free_bytes) return std::nullopt;
  return *free_bytes + ParseMeminfoField(meminfo, "Buffers").value_or(0) +
         ParseMeminfoField(meminfo, "Cached").value_or(0);
}

std::optional<uint64_t> ParseCgroupBytes(std::string_view text) {
  const auto number = ParseNumber(Trim(text));
  // Version 1 rounds the largest limit down to a page, whose size differs between machines.
  constexpr uint64_t kNoLimit = (uint64_t{1} << 63) - (uint64_t{1} << 20);
  if (!number || *number >= kNoLimit) return std::nullopt;
  return number;
}

std::optional<uint64_t> ParseCgroupStat(std::string_view stat, std::string_view field) {
  for (const std::string_view line : Split(stat, '\n')) {
    const bool is_wanted = line.starts_with(field) && line.substr(field.size(), 1) == " ";
    if (is_wanted) return ParseNumber(Trim(line.substr(field.size())));
  }
  return std::nullopt;
}

std::optional<std::string> ParseCgroupPath(std::string_view proc_self_cgroup, CgroupVersion version) {
  for (const std::string_view line : Split(proc_self_cgroup, '\n')) {
    // "4:memory:/path" in version 1, "0::/path" in version 2; a path may itself hold colons.
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_wanted = version == CgroupVersion::kV2 ? line.substr(0, first) == "0" && controllers.empty()
                                                         : HasItem(controllers, "memory");
    if (is_wanted) return std::string(line.substr(second + 1));
  }
  return std::nullopt;
}

std::optional<CgroupMount> ParseCgroupMount(std::string_view mountinfo, CgroupVersion version) {
  for (const std::string_view line : Split(mountinfo, '\n')) {
    // "ID PARENT DEVICE ROOT MOUNT_POINT OPTIONS [TAGS ...] - TYPE SOURCE SUPER_OPTIONS"
    const size_t separator = line.find(" - ");
    if (separator == std::string_view::npos) continue;
    const auto before = Split(line.substr(0, separator), ' ');
    const auto after = Split(line.substr(separator + 3), ' ');
    if (before.size() < 6 || after.size() < 3) continue;
    const bool is_wanted =
        version == CgroupVersion::kV2 ? after[0] == "cgroup2" : after[0] == "cgroup" && HasItem(after.back(), "memory");
    if (is_wanted) return CgroupMount{UnescapeOctal(before[3]), UnescapeOctal(before[4])};
  }
  return std::nullopt;
}

std::vector<std::string> CgroupFolders(const CgroupMount& mount, const std::string& path) {
  // A container may see only its own group mounted while its path is still told from the machine's root.
  std::string below = path;
  if (mount.root != "/") {
    const bool is_inside = path == mount.root || path.starts_with(mount.root + "/");
    below = is_inside ? path.substr(mount.root.size()) : "";
  }
  // A path out of the namespace ("/../x") names nothing below the mount point.
  if (!below.starts_with('/') || below == "/.." || below.starts_with("/../")) below.clear();
  std::vector<std::string> folders;
  while (!below.empty() && below != "/") {
    folders.push_back(mount.mount_point + below);
    below.erase(below.rfind('/'));
  }
  folders.push_back(mount.mount_point);
  return folders;
}

}  // namespace oga
