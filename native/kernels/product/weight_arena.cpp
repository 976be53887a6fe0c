#include "kernels/product/weight_arena.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/error.h"

namespace oga::kernels {

namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kHugePageBytes = size_t{2} << 20;
constexpr size_t kPieceBytes = size_t{64} << 20;  // what is not handed out is never touched, and so costs nothing

size_t RoundUp(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

// Whole huge pages; the parts of the mapping before and behind them are given back.
uint8_t* MapHugePages(size_t bytes) {
  void* const mapped =
      mmap(nullptr, bytes + kHugePageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    Throw(StatusCode::kResourceExhausted, "cannot get ", bytes, " bytes for packed weights; free memory, or load a ",
          "smaller model");
  }
  uint8_t* const start = static_cast<uint8_t*>(mapped);
  const size_t before_bytes =
      RoundUp(reinterpret_cast<uintptr_t>(start), kHugePageBytes) - reinterpret_cast<uintptr_t>(start);
  if (before_bytes > 0) munmap(start, before_bytes);
  if (before_bytes < kHugePageBytes) munmap(start + before_bytes + bytes, kHugePageBytes - before_bytes);
#if defined(MADV_HUGEPAGE)
  madvise(start + before_bytes, bytes, MADV_HUGEPAGE);  // advice: without it the pages are only smaller
#endif
  return start + before_bytes;
}

}  // namespace

WeightArena::~WeightArena() {
  for (const Piece& piece : pieces_) munmap(piece.begin, piece.bytes);
}

uint8_t* WeightArena::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kLineBytes);
  if (pieces_.empty() || pieces_.back().bytes - used_in_last_bytes_ < bytes) {
    pieces_.reserve(pieces_.size() + 1);
    const size_t piece_bytes = RoundUp(std::max(bytes, kPieceBytes), kHugePageBytes);
    pieces_.push_back({MapHugePages(piece_bytes), piece_bytes});
    used_in_last_bytes_ = 0;
  }
  uint8_t* const memory = pieces_.back().begin + used_in_last_bytes_;
  used_in_last_bytes_ += bytes;
  used_bytes_ += bytes;
  return memory;
}

}  // namespace oga::kernels
