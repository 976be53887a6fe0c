// Element types of ONNX Runtime tensors, with the runtime's own numbers.
#pragma once

#include <cstddef>

namespace oga::ort {

enum class ElementType : int {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8e4m3fn = 17,
};

// The type as ONNX spells it ("float32" is "float"); "unknown" for a number that is not listed above.
const char* ElementTypeName(ElementType type) noexcept;

}  // namespace oga::ort
