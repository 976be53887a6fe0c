// The lower and the higher of two counts, for sources that may not use what the standard library has inline
// (paged_attention_variant.h says why).
#pragma once

#include <cstdint>

namespace oga::kernels {

static inline int32_t Lower(int32_t a, int32_t b) { return a < b ? a : b; }
static inline int32_t Higher(int32_t a, int32_t b) { return a > b ? a : b; }

}  // namespace oga::kernels
