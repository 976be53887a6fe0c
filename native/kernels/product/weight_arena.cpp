#include "kernels/product/weight_arena.h"

#include <algorithm>

#include "base/error.h"
#include "base/platform_file.h"

namespace oga::kernels {

namespace {

constexpr size_t kLineBytes = 64;
constexpr size_t kPieceBytes = size_t{64} << 20;  // what is not handed out is never touched, and so costs nothing

size_t RoundUp(size_t bytes, size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

platform::Pages MapPiece(size_t bytes) {
  platform::Pages pages(bytes, platform::PageSize::kHuge);
  if (!pages) {
    Throw(StatusCode::kResourceExhausted, "cannot get ", bytes, " bytes for packed weights (",
          platform::SystemReason(pages.error()), "); free memory, or load a smaller model");
  }
  return pages;
}

}  // namespace

WeightArena::~WeightArena() {
  pieces_.clear();  // first: memory is given back before what it was charged
  if (account_ != nullptr) account_->Refund(used_bytes_);
}

uint8_t* WeightArena::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kLineBytes);
  if (pieces_.empty() || pieces_.back().bytes() - used_in_last_bytes_ < bytes) {
    pieces_.reserve(pieces_.size() + 1);
    const size_t piece_bytes = RoundUp(std::max(bytes, kPieceBytes), platform::kHugePageBytes);
    pieces_.push_back(MapPiece(piece_bytes));
    used_in_last_bytes_ = 0;
  }
  if (account_ != nullptr) account_->Charge(bytes);
  uint8_t* const memory = pieces_.back().data() + used_in_last_bytes_;
  used_in_last_bytes_ += bytes;
  used_bytes_ += bytes;
  return memory;
}

}  // namespace oga::kernels
