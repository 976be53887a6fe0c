// What a graph's products have for weights, as far as the choice of their kernel depends on it.
#pragma once

#include <string>

namespace oga {

// Whether a MatMul or Gemm of ONNX in the graph at `path` has a constant of 16 bits on its right side. Graphs inside of
// nodes do not count. Throws Error as CheckOnnxFiles does, which has been called before.
bool HasHalfProducts(const std::string& path);

}  // namespace oga
