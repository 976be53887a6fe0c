#include "ort/mapped_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <memory>

namespace oga::ort {

namespace {

constexpr size_t kWorthwhileBytes = size_t{1} << 18;  // finding out costs more than less memory is worth

// Whether one mapping of a file, of which nothing was written, covers [begin, end).
bool IsMappedFile(uintptr_t begin, uintptr_t end) {
  const std::unique_ptr<FILE, int (*)(FILE*)> maps(std::fopen("/proc/self/maps", "re"), std::fclose);
  if (!maps) return false;
  char line[512];
  while (std::fgets(line, sizeof(line), maps.get()) != nullptr) {
    uintptr_t first = 0, last = 0;
    uint64_t inode = 0;
    char rights[5] = {};
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %" SCNu64, &first, &last, rights, &inode) != 4) {
      continue;  // the rest of a long path
    }
    if (begin < first || begin >= last) continue;
    return end <= last && inode != 0 && rights[1] == '-';
  }
  return false;
}

}  // namespace

void DropMappedPages(const void* data, size_t bytes) noexcept {
  const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page * page;
  if (bytes < kWorthwhileBytes || end <= begin || !IsMappedFile(begin, end)) return;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace oga::ort
