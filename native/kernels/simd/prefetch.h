// Lines of a stream of memory, asked for ahead of their use. Included by the variant sources only; see simd_math.h for
// linkage.
#pragma once

#include <cstdint>

#include "kernels/simd/simd_math.h"

namespace oga::kernels {
namespace {

// Asks for `bytes` of a stream, so far ahead of what is read of it.
template <int ahead_bytes, int bytes>
inline void PrefetchAhead(const uint8_t* codes) {
  OGA_UNROLL
  for (int line = 0; line < bytes; line += 64) __builtin_prefetch(codes + ahead_bytes + line, 0, 3);
}

}  // namespace
}  // namespace oga::kernels
