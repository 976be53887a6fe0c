#include "memory/kv_storage.h"

#include <string>

#include "base/check.h"
#include "base/error.h"
#include "base/platform_memory.h"
#include "base/platform_process.h"

namespace oga {

namespace {

constexpr uint64_t kHugePageBytes = platform::kHugePageBytes;
constexpr uint64_t kSides = 2;

// Multiplies sizes that a config may set to anything; a product beyond 64 bits cannot be mapped either.
class Bytes {
 public:
  explicit Bytes(uint64_t value) : value_(value) {}

  Bytes operator*(uint64_t factor) const {
    Bytes product(value_ * factor);
    product.overflowed_ = overflowed_ || (factor != 0 && value_ > UINT64_MAX / factor);
    return product;
  }

  Bytes RoundedUp(uint64_t granule) const {
    Bytes rounded((value_ + granule - 1) / granule * granule);
    rounded.overflowed_ = overflowed_ || value_ > UINT64_MAX - granule;
    return rounded;
  }

  bool overflowed() const { return overflowed_; }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_;
  bool overflowed_ = false;
};

[[noreturn]] void ThrowTooLarge(const KvShape& shape, const std::string& wanted, const std::string& reason) {
  Throw(StatusCode::kResourceExhausted, Field{"engine.dynamic_batching.num_blocks"}, "the key-value cache of ",
        shape.num_blocks, " blocks of ", shape.block_size_slots, " tokens over ", shape.num_layers, " layers needs ",
        wanted, ", which the system does not give (", reason,
        "); set engine.dynamic_batching.num_blocks lower, or free memory");
}

}  // namespace

uint64_t KvShape::slot_bytes() const {
  return uint64_t{num_kv_heads} * head_size * static_cast<uint64_t>(CacheElementBytes(type));
}

KvStorage::KvStorage(const Device& device, const KvShape& shape, Lease lease)
    : shape_(shape), lease_(std::move(lease)) {
  const Bytes block = Bytes(shape.slot_bytes()) * shape.block_size_slots;
  const Bytes tensor = block * shape.num_blocks;
  // A tensor below the size of a huge page would populate memory it does not have.
  const bool huge = tensor.overflowed() || tensor.value() >= kHugePageBytes;
  const uint64_t alignment = huge ? kHugePageBytes : platform::PageBytes();
  const Bytes stride = tensor.RoundedUp(alignment);
  const Bytes all = stride * (kSides * shape.num_layers);
  OGA_CHECK_MSG(tensor.value() > 0 && shape.num_layers > 0, "a key-value cache of no size");
  if (all.overflowed()) ThrowTooLarge(shape, "more bytes than there are addresses", "it cannot be counted in 64 bits");
  block_tensor_bytes_ = block.value();
  tensor_bytes_ = tensor.value();
  tensor_stride_bytes_ = stride.value();
  try {
    memory_ = device.AllocatePool(all.value(), alignment);
  } catch (const Error& error) {
    if (error.code() != StatusCode::kResourceExhausted) throw;
    ThrowTooLarge(shape, Message(all.value(), " bytes"), error.message());
  }
  if (void* const pages = memory_->host()) {
    lease_.CountByPages(pages, memory_->bytes());
  } else {
    lease_.Settle();
  }
}

DeviceAddress KvStorage::Tensor(uint32_t layer, KvSide side) const {
  OGA_CHECK(layer < shape_.num_layers);
  const uint64_t index = kSides * layer + (side == KvSide::kKey ? 0 : 1);
  return memory_->address() + index * tensor_stride_bytes_;
}

void KvStorage::CopyBlock(DeviceStream& stream, int32_t source, int32_t target) const {
  const auto exists = [&](int32_t block) { return block >= 0 && static_cast<uint32_t>(block) < shape_.num_blocks; };
  OGA_CHECK_MSG(exists(source) && exists(target), "copy of block ", source, " to ", target, " of ", shape_.num_blocks);
  if (source == target) return;
  for (uint64_t i = 0; i < kSides * shape_.num_layers; ++i) {
    const DeviceAddress tensor = memory_->address() + i * tensor_stride_bytes_;
    stream.CopyWithin(tensor + static_cast<uint64_t>(target) * block_tensor_bytes_,
                      tensor + static_cast<uint64_t>(source) * block_tensor_bytes_, block_tensor_bytes_);
  }
}

uint64_t KvStorage::block_bytes() const { return kSides * shape_.num_layers * block_tensor_bytes_; }

}  // namespace oga
