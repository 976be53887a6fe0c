#include "kernels/simd/float_type.h"

#include <algorithm>

#include "kernels/simd/bfloat16.h"
#include "kernels/simd/float16.h"

namespace oga::kernels {

void Widen(FloatType type, const void* from, int64_t count, float* to) {
  switch (type) {
    case FloatType::kFloat: std::copy_n(static_cast<const float*>(from), count, to); return;
    case FloatType::kFloat16:
      std::transform(static_cast<const Float16*>(from), static_cast<const Float16*>(from) + count, to,
                     [](Float16 value) { return ToFloat(value); });
      return;
    case FloatType::kBfloat16:
      std::transform(static_cast<const Bfloat16*>(from), static_cast<const Bfloat16*>(from) + count, to,
                     [](Bfloat16 value) { return ToFloat(value); });
      return;
  }
}

void Narrow(FloatType type, const float* from, int64_t count, void* to) {
  switch (type) {
    case FloatType::kFloat: std::copy_n(from, count, static_cast<float*>(to)); return;
    case FloatType::kFloat16: std::transform(from, from + count, static_cast<Float16*>(to), ToFloat16); return;
    case FloatType::kBfloat16: std::transform(from, from + count, static_cast<Bfloat16*>(to), ToBfloat16); return;
  }
}

}  // namespace oga::kernels
