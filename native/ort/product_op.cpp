#include "ort/product_op.h"

#include <limits>
#include <vector>

#include "ort/make.h"

namespace oga::ort {

namespace {
constexpr const char* kDoing = "cannot infer the shapes of a product";
}

ProductOp::ProductOp(ProductMemory* memory) noexcept : memory(memory) {
  GetExecutionProviderType = [](const abi::CustomOp*) noexcept { return "CPUExecutionProvider"; };
  GetOutputTypeCount = [](const abi::CustomOp*) noexcept { return size_t{1}; };
  GetOutputCharacteristic = [](const abi::CustomOp*, size_t) noexcept { return abi::Characteristic::kRequired; };
  GetInputMemoryType = [](const abi::CustomOp*, size_t) noexcept { return abi::MemoryType::kDefault; };
  GetVariadicInputMinArity = [](const abi::CustomOp*) noexcept { return 1; };
  GetVariadicInputHomogeneity = [](const abi::CustomOp*) noexcept { return 1; };
  GetVariadicOutputMinArity = [](const abi::CustomOp*) noexcept { return 1; };
  GetVariadicOutputHomogeneity = [](const abi::CustomOp*) noexcept { return 1; };
  GetStartVersion = [](const abi::CustomOp*) noexcept { return 1; };
  GetEndVersion = [](const abi::CustomOp*) noexcept { return std::numeric_limits<int>::max(); };
}

std::optional<TensorInfo> InferredInput(abi::ShapeInferContext* context, size_t input) {
  abi::ShapeInfo* info = nullptr;  // the runtime's
  if (!Succeeded(Api().ShapeInferContext_GetInputTypeShape(context, input, &info))) return std::nullopt;
  TensorInfo tensor = ReadShapeInfo(info);
  if (tensor.dims.empty()) return std::nullopt;
  return tensor;
}

int64_t InferredInt(abi::ShapeInferContext* context, const char* attribute) {
  const abi::OpAttr* found = nullptr;  // the runtime's
  if (!Succeeded(Api().ShapeInferContext_GetAttribute(context, attribute, &found)) || found == nullptr) return 0;
  int64_t value = 0;
  size_t bytes = 0;
  Check(Api().ReadOpAttr(found, abi::OpAttrType::kInt, &value, sizeof(value), &bytes), kDoing);
  return value;
}

void PromiseOutput(abi::ShapeInferContext* context, const TensorInfo& output) {
  std::vector<int64_t> sizes;
  std::vector<const char*> symbols;
  for (const Dimension& dim : output.dims) {
    sizes.push_back(dim.size);
    symbols.push_back(dim.symbol.c_str());
  }
  const auto info = Make<abi::ShapeInfo>(Api().CreateTensorTypeAndShapeInfo, kDoing);
  Check(Api().SetTensorElementType(info.get(), output.type), kDoing);
  Check(Api().SetDimensions(info.get(), sizes.data(), sizes.size()), kDoing);
  Check(Api().SetSymbolicDimensions(info.get(), symbols.data(), symbols.size()), kDoing);
  Check(Api().ShapeInferContext_SetOutputTypeShape(context, 0, info.get()), kDoing);
}

}  // namespace oga::ort
