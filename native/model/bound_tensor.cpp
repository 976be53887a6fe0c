#include "model/bound_tensor.h"

#include <algorithm>
#include <span>

#include "base/check.h"

namespace oga {

namespace {

constexpr size_t kLeastBytes = 64;

size_t ElementBytes(ort::ElementType type) {
  OGA_CHECK(type == ort::ElementType::kInt32 || type == ort::ElementType::kInt64 || type == ort::ElementType::kFloat);
  return type == ort::ElementType::kInt64 ? 8 : 4;
}

}  // namespace

// Never empty: the runtime wants an address even for a tensor without elements.
size_t GrownBytes(size_t bytes, const DeviceMemory* outgrown) {
  return std::max<size_t>({bytes, outgrown == nullptr ? 0 : 2 * outgrown->bytes(), kLeastBytes});
}

BoundTensor::BoundTensor(ort::IoBinding& binding, BindingSide side, std::string name, ort::ElementType type,
                         Ledger& ledger)
    : binding_(binding),
      side_(side),
      name_(std::move(name)),
      type_(type),
      lease_(ledger.Open(side == BindingSide::kInput ? MemoryRole::kWorkspace : MemoryRole::kOutput,
                         BeyondMemory::kAttribute)) {
  lease_.Settle();
}

// Claims room to grow, or where there is none what is needed now; returns what was claimed.
size_t BoundTensor::Claim(size_t bytes) {
  const size_t grown_bytes = GrownBytes(bytes, memory_.get());
  const size_t least_bytes = GrownBytes(bytes, nullptr);
  try {
    lease_.Resize(grown_bytes);
    return grown_bytes;
  } catch (const MemoryRefused&) {
    if (grown_bytes == least_bytes) throw;
  }
  lease_.Resize(least_bytes);
  return least_bytes;
}

void BoundTensor::Reserve(size_t bytes) {
  if (memory_ != nullptr && bytes <= memory_->bytes()) return;
  const size_t grown_bytes = Claim(bytes);
  bound_rank_ = 0;
  memory_.reset();  // first, so that the old and the new memory are never held together
  try {
    memory_ = binding_.session().device().AllocateBuffer(grown_bytes);
  } catch (...) {
    lease_.Shrink(grown_bytes);
    throw;
  }
}

void BoundTensor::Shape(std::initializer_list<int64_t> dims) {
  OGA_CHECK(dims.size() >= 1 && dims.size() <= kMaxRank);
  size_t bytes = ElementBytes(type_);
  for (const int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  Reserve(bytes);
  if (bound_rank_ == dims.size() && std::equal(dims.begin(), dims.end(), dims_.begin())) return;
  bound_rank_ = 0;
  const ort::Tensor tensor(binding_.session(), memory_->address(), bytes, std::span(dims.begin(), dims.size()), type_);
  if (side_ == BindingSide::kInput) {
    binding_.BindInput(name_, tensor);
  } else {
    binding_.BindOutput(name_, tensor);
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
  bytes_ = bytes;
  bound_rank_ = dims.size();
}

}  // namespace oga
