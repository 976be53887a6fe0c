// The element types that keys and values are kept in (the KV cache dtype).
#pragma once

#include <cstdint>

namespace oga {

enum class CacheType { kFloat32, kFloat16, kBfloat16, kInt8 };

constexpr int32_t CacheElementBytes(CacheType type) {
  switch (type) {
    case CacheType::kFloat32: return 4;
    case CacheType::kFloat16:
    case CacheType::kBfloat16: return 2;
    case CacheType::kInt8: break;
  }
  return 1;
}

}  // namespace oga
