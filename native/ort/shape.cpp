#include "ort/shape.h"

#include "ort/make.h"

namespace oga::ort {

std::string ShapeText(const std::vector<Dimension>& dims) {
  std::string text = "[";
  for (const Dimension& dim : dims) {
    if (text.size() > 1) text += ", ";
    text += dim.is_fixed() ? std::to_string(dim.size) : dim.symbol.empty() ? "?" : dim.symbol;
  }
  return text + "]";
}

TensorInfo ReadShapeInfo(const abi::ShapeInfo* info) {
  constexpr const char* kDoing = "cannot read a tensor's shape";
  TensorInfo tensor;
  Check(Api().GetTensorElementType(info, &tensor.type), kDoing);
  size_t rank = 0;
  Check(Api().GetDimensionsCount(info, &rank), kDoing);
  std::vector<int64_t> sizes(rank);
  std::vector<const char*> symbols(rank, nullptr);
  Check(Api().GetDimensions(info, sizes.data(), rank), kDoing);
  Check(Api().GetSymbolicDimensions(info, symbols.data(), rank), kDoing);
  for (size_t i = 0; i < rank; ++i) {
    tensor.dims.push_back({sizes[i], sizes[i] < 0 && symbols[i] != nullptr ? symbols[i] : ""});
  }
  return tensor;
}

}  // namespace oga::ort
