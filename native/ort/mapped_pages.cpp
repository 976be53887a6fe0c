#include "ort/mapped_pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace oga::ort {

namespace {

constexpr size_t kWorthwhileBytes = size_t{1} << 16;  // asking costs more than less memory is worth

// Whether no page in [begin, end) is one of the process's own: such a page would be lost, while that of a file, even of
// a private mapping as long as nobody wrote to it, can be read again. The runtime maps weights privately and writable.
bool AreFilePages(uintptr_t begin, uintptr_t end, uintptr_t page_bytes) {
  constexpr uint64_t kPresent = uint64_t{1} << 63, kSwapped = uint64_t{1} << 62, kOfFile = uint64_t{1} << 61;
  const int pages = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (pages < 0) return false;
  bool all = true;
  for (uintptr_t first = begin / page_bytes; all && first < end / page_bytes;) {
    uint64_t entries[512];
    const size_t count = std::min<size_t>(end / page_bytes - first, std::size(entries));
    const auto offset = static_cast<off_t>(first * sizeof(entries[0]));
    all = pread(pages, entries, count * sizeof(entries[0]), offset) == static_cast<ssize_t>(count * sizeof(entries[0]));
    for (size_t i = 0; all && i < count; ++i) {
      all = (entries[i] & kSwapped) == 0 && ((entries[i] & kPresent) == 0 || (entries[i] & kOfFile) != 0);
    }
    first += count;
  }
  close(pages);
  return all;
}

}  // namespace

void DropMappedPages(const void* data, size_t bytes) noexcept {
  const uintptr_t page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page_bytes * page_bytes;
  if (bytes < kWorthwhileBytes || end <= begin || !AreFilePages(begin, end, page_bytes)) return;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace oga::ort
