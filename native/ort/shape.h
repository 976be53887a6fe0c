// Names, element types and dimensions of tensors as the runtime reports them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ort/element_type.h"

namespace oga::ort {

namespace abi {
struct ShapeInfo;
}

// A fixed size, or a symbol whose size each run decides ("" when the graph does not name it).
struct Dimension {
  int64_t size = -1;
  std::string symbol;

  bool is_fixed() const { return size >= 0; }
};

struct TensorInfo {
  std::string name;
  ElementType type = ElementType::kUndefined;  // undefined: not a tensor
  std::vector<Dimension> dims;
};

// "[num_tokens, 576]"; an unnamed symbol is "?".
std::string ShapeText(const std::vector<Dimension>& dims);

// Reads element type and dimensions; the name stays empty.
TensorInfo ReadShapeInfo(const abi::ShapeInfo* info);

}  // namespace oga::ort
