// The keys and values of one executor: a tensor per layer and side, block-major, at places of a device that never move.
//
// Owned by one executor, used on its engine's thread. Which block belongs to whom is the cache layer's business; here a
// block is only a range of bytes.
//   K1  A tensor holds [num_blocks, block_size, kv_heads, head_size] elements and starts on a page boundary, of a huge
//       page when it fills one.
//   K2  In host memory, pages that nobody wrote are not populated: a large pool costs memory only as far as it is used.
//   K3  It is charged to the lease it is made with. What huge pages round up, at most 2 MiB a tensor, is not.
#pragma once

#include <cstdint>
#include <memory>

#include "device/device.h"
#include "memory/ledger.h"
#include "step/cache_type.h"

namespace oga {

struct KvShape {
  uint32_t num_layers = 0;
  uint32_t num_blocks = 0;
  uint32_t block_size_slots = 0;
  uint32_t num_kv_heads = 0;
  uint32_t head_size = 0;
  CacheType type = CacheType::kFloat32;

  // Bytes of one slot (one token) of one layer and side.
  uint64_t slot_bytes() const;
};

enum class KvSide { kKey, kValue };

class KvStorage {
 public:
  // Throws Error{kResourceExhausted} naming the bytes wanted when the device does not give them.
  KvStorage(const Device& device, const KvShape& shape, Lease lease = {});

  // `layer` counts the stored layers from 0.
  DeviceAddress Tensor(uint32_t layer, KvSide side) const;

  // Copies a block's keys and values of all layers, in the order of the stream. Both ids must be in [0, num_blocks).
  void CopyBlock(DeviceStream& stream, int32_t source, int32_t target) const;

  const KvShape& shape() const { return shape_; }
  uint64_t tensor_bytes() const { return tensor_bytes_; }
  uint64_t block_bytes() const;  // of all layers and sides
  uint64_t total_bytes() const { return memory_->bytes(); }

 private:
  KvShape shape_;
  Lease lease_;                           // given back after the memory is
  uint64_t block_tensor_bytes_ = 0;       // one block of one tensor
  uint64_t tensor_bytes_ = 0;             // of its elements
  uint64_t tensor_stride_bytes_ = 0;      // from one tensor to the next
  std::unique_ptr<DeviceMemory> memory_;  // the tensors, layer after layer, keys before values
};

}  // namespace oga
