#include "model/bound_tensor.h"

#include <algorithm>
#include <span>

#include "base/check.h"

namespace oga {

namespace {

size_t ElementBytes(ort::ElementType type) {
  OGA_CHECK(type == ort::ElementType::kInt32 || type == ort::ElementType::kInt64 || type == ort::ElementType::kFloat);
  return type == ort::ElementType::kInt64 ? 8 : 4;
}

}  // namespace

BoundTensor::BoundTensor(ort::IoBinding& binding, const ort::Environment& environment, BindingSide side,
                         std::string name, ort::ElementType type, Ledger& ledger)
    : binding_(binding),
      environment_(environment),
      side_(side),
      name_(std::move(name)),
      type_(type),
      lease_(ledger.Open(side == BindingSide::kInput ? MemoryRole::kWorkspace : MemoryRole::kOutput,
                         BeyondMemory::kAttribute)) {
  lease_.Settle();
}

void BoundTensor::Reserve(size_t bytes) {
  // Never empty: the runtime wants an address even for a tensor without elements.
  if (bytes <= capacity_bytes_ && memory_ != nullptr) return;
  const size_t capacity_bytes = std::max({bytes, 2 * capacity_bytes_, kAlignment});
  lease_.Resize(capacity_bytes);
  bound_rank_ = 0;
  capacity_bytes_ = 0;
  memory_.reset();  // first, so that the old and the new memory are never held together
  try {
    memory_.reset(static_cast<std::byte*>(::operator new (capacity_bytes, std::align_val_t{kAlignment})));
  } catch (const std::bad_alloc&) {
    lease_.Shrink(capacity_bytes);
    throw;
  }
  capacity_bytes_ = capacity_bytes;
}

void* BoundTensor::Shape(std::initializer_list<int64_t> dims) {
  OGA_CHECK(dims.size() >= 1 && dims.size() <= kMaxRank);
  size_t bytes = ElementBytes(type_);
  for (const int64_t dim : dims) bytes *= static_cast<size_t>(dim);
  Reserve(bytes);
  if (bound_rank_ == dims.size() && std::equal(dims.begin(), dims.end(), dims_.begin())) return memory_.get();
  bound_rank_ = 0;
  const ort::Tensor tensor(environment_, memory_.get(), bytes, std::span(dims.begin(), dims.size()), type_);
  if (side_ == BindingSide::kInput) {
    binding_.BindInput(name_, tensor);
  } else {
    binding_.BindOutput(name_, tensor);
  }
  std::copy(dims.begin(), dims.end(), dims_.begin());
  bound_rank_ = dims.size();
  return memory_.get();
}

}  // namespace oga
