// The types of floating point numbers that operators take, and their conversion to and from float.
#pragma once

#include <cstdint>

namespace oga::kernels {

enum class FloatType { kFloat, kFloat16, kBfloat16 };

inline int64_t BytesOf(FloatType type) { return type == FloatType::kFloat ? 4 : 2; }

// `count` numbers of `type` as floats, exactly.
void Widen(FloatType type, const void* from, int64_t count, float* to);

// The same back, to the nearest, ties to even.
void Narrow(FloatType type, const float* from, int64_t count, void* to);

}  // namespace oga::kernels
