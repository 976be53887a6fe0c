#include "ort/element_type.h"

namespace oga::ort {

const char* ElementTypeName(ElementType type) noexcept {
  switch (type) {
    case ElementType::kUndefined: return "undefined";
    case ElementType::kFloat: return "float";
    case ElementType::kUint8: return "uint8";
    case ElementType::kInt8: return "int8";
    case ElementType::kUint16: return "uint16";
    case ElementType::kInt16: return "int16";
    case ElementType::kInt32: return "int32";
    case ElementType::kInt64: return "int64";
    case ElementType::kString: return "string";
    case ElementType::kBool: return "bool";
    case ElementType::kFloat16: return "float16";
    case ElementType::kDouble: return "double";
    case ElementType::kUint32: return "uint32";
    case ElementType::kUint64: return "uint64";
    case ElementType::kComplex64: return "complex64";
    case ElementType::kComplex128: return "complex128";
    case ElementType::kBfloat16: return "bfloat16";
    case ElementType::kFloat8e4m3fn: return "float8e4m3fn";
  }
  return "unknown";
}

}  // namespace oga::ort
