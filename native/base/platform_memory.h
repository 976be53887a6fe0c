// Pages of memory. Any thread; a mapping is owned by who made it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oga::platform {

inline constexpr size_t kHugePageBytes = size_t{2} << 20;

enum class PageSize {
  kSmall,
  kHuge,  // from the boundary of a huge page on; advice: small ones serve where the system has no others
};

// Zeroed pages that cost memory only as far as they are touched.
class Pages {
 public:
  Pages() = default;
  // Maps `bytes`. Empty when the system refuses; `error()` is its number then.
  Pages(size_t bytes, PageSize size);
  Pages(Pages&& other) noexcept;
  Pages& operator=(Pages&& other) noexcept;
  ~Pages();

  explicit operator bool() const { return begin_ != nullptr; }
  int error() const { return error_; }
  unsigned char* data() const { return begin_; }
  size_t bytes() const { return bytes_; }

 private:
  unsigned char* begin_ = nullptr;
  size_t bytes_ = 0;
  int error_ = 0;
};

// The pages wholly within `bytes` from `data` leave the process's memory if they are a mapped file's, from which a
// later read gets them again. Memory of any other kind keeps what is in it. Nobody writes there meanwhile.
// Returns the bytes that left.
size_t DropFilePages(const void* data, size_t bytes) noexcept;

// Bytes of the whole pages of [begin, begin + bytes) that are in memory: pages that nobody has touched cost nothing. What
// is not mapped counts as not there. Asks the kernel at each call.
uint64_t ResidentBytes(uintptr_t begin, uint64_t bytes) noexcept;

}  // namespace oga::platform
