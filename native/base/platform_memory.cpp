#include "base/platform_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "base/platform_process.h"

namespace oga::platform {

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

Pages::Pages(size_t bytes, PageSize size) {
  // One huge page more, so that there is a boundary to start on; what lies before and behind is given back.
  const size_t spare_bytes = size == PageSize::kHuge ? kHugePageBytes : 0;
  if (bytes > SIZE_MAX - 2 * kHugePageBytes) {
    error_ = ENOMEM;
    return;
  }
  const auto page_bytes = static_cast<size_t>(PageBytes());
  bytes_ = (bytes + page_bytes - 1) / page_bytes * page_bytes;
  void* const mapped = mmap(nullptr, bytes_ + spare_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    error_ = errno;
    return;
  }
  begin_ = static_cast<unsigned char*>(mapped);
  if (spare_bytes == 0) return;
  const size_t before = (kHugePageBytes - reinterpret_cast<uintptr_t>(begin_) % kHugePageBytes) % kHugePageBytes;
  if (before > 0) munmap(begin_, before);
  if (before < spare_bytes) munmap(begin_ + before + bytes_, spare_bytes - before);
  begin_ += before;
#if defined(MADV_HUGEPAGE)
  madvise(begin_, bytes_, MADV_HUGEPAGE);  // advice: without it the pages are only smaller
#endif
}

Pages::Pages(Pages&& other) noexcept
    : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)), error_(other.error_) {}

Pages& Pages::operator=(Pages&& other) noexcept {
  std::swap(begin_, other.begin_);
  std::swap(bytes_, other.bytes_);
  std::swap(error_, other.error_);
  return *this;
}

Pages::~Pages() {
  if (begin_ != nullptr) munmap(begin_, bytes_);
}

size_t DropFilePages(const void* data, size_t bytes) noexcept {
  const auto page_bytes = static_cast<uintptr_t>(PageBytes());
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(data) + page_bytes - 1) / page_bytes * page_bytes;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes) / page_bytes * page_bytes;
  if (bytes < kWorthwhileBytes || end <= begin || !AreFilePages(begin, end, page_bytes)) return 0;
  return madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED) == 0 ? end - begin : 0;
}

uint64_t ResidentBytes(uintptr_t begin, uint64_t bytes) noexcept {
  const auto page_bytes = static_cast<uint64_t>(PageBytes());
  const uintptr_t end = (begin + bytes) / page_bytes * page_bytes;
  unsigned char present[1 << 14];  // a byte for each page
  uint64_t pages = 0;
  for (uintptr_t first = (begin + page_bytes - 1) / page_bytes * page_bytes; first < end;) {
    const uint64_t count = std::min<uint64_t>((end - first) / page_bytes, std::size(present));
    if (mincore(reinterpret_cast<void*>(first), count * page_bytes, present) == 0) {
      for (uint64_t i = 0; i < count; ++i) pages += present[i] & 1;
    }
    first += count * page_bytes;
  }
  return pages * page_bytes;
}

}  // namespace oga::platform
