#include "operators/cpu/product_op.h"

#include <limits>
#include <new>
#include <vector>

#include "base/platform_memory.h"
#include "ort/make.h"

namespace oga::operators {

namespace {
constexpr const char* kDoing = "cannot infer the shapes of a product";
}

void DropPacked(ProductMemory* memory, const void* data, size_t bytes) noexcept {
  const size_t dropped_bytes = platform::DropFilePages(data, bytes);
  try {
    if (memory->dropped.insert(data).second) memory->weights_account.Refund(dropped_bytes);
  } catch (const std::bad_alloc&) {  // it stays charged
  }
}

ProductOp::ProductOp(ProductMemory* memory) noexcept : memory(memory) {
  GetExecutionProviderType = [](const ort::abi::CustomOp*) noexcept { return "CPUExecutionProvider"; };
  GetOutputTypeCount = [](const ort::abi::CustomOp*) noexcept { return size_t{1}; };
  GetOutputCharacteristic = [](const ort::abi::CustomOp*, size_t) noexcept {
    return ort::abi::Characteristic::kRequired;
  };
  GetInputMemoryType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::abi::MemoryType::kDefault; };
  GetVariadicInputMinArity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  GetVariadicInputHomogeneity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  GetVariadicOutputMinArity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  GetVariadicOutputHomogeneity = [](const ort::abi::CustomOp*) noexcept { return 1; };
  GetStartVersion = [](const ort::abi::CustomOp*) noexcept { return 1; };
  GetEndVersion = [](const ort::abi::CustomOp*) noexcept { return std::numeric_limits<int>::max(); };
}

std::optional<ort::TensorInfo> InferredInput(ort::abi::ShapeInferContext* context, size_t input) {
  ort::abi::ShapeInfo* info = nullptr;  // the runtime's
  if (!ort::Succeeded(ort::Api().ShapeInferContext_GetInputTypeShape(context, input, &info))) return std::nullopt;
  ort::TensorInfo tensor = ort::ReadShapeInfo(info);
  if (tensor.dims.empty()) return std::nullopt;
  return tensor;
}

int64_t InferredInt(ort::abi::ShapeInferContext* context, const char* attribute) {
  const ort::abi::OpAttr* found = nullptr;  // the runtime's
  if (!ort::Succeeded(ort::Api().ShapeInferContext_GetAttribute(context, attribute, &found)) || found == nullptr)
    return 0;
  int64_t value = 0;
  size_t bytes = 0;
  ort::Check(ort::Api().ReadOpAttr(found, ort::abi::OpAttrType::kInt, &value, sizeof(value), &bytes), kDoing);
  return value;
}

void PromiseOutput(ort::abi::ShapeInferContext* context, const ort::TensorInfo& output) {
  std::vector<int64_t> sizes;
  std::vector<const char*> symbols;
  for (const ort::Dimension& dim : output.dims) {
    sizes.push_back(dim.size);
    symbols.push_back(dim.symbol.c_str());
  }
  const auto info = ort::Make<ort::abi::ShapeInfo>(ort::Api().CreateTensorTypeAndShapeInfo, kDoing);
  ort::Check(ort::Api().SetTensorElementType(info.get(), output.type), kDoing);
  ort::Check(ort::Api().SetDimensions(info.get(), sizes.data(), sizes.size()), kDoing);
  ort::Check(ort::Api().SetSymbolicDimensions(info.get(), symbols.data(), symbols.size()), kDoing);
  ort::Check(ort::Api().ShapeInferContext_SetOutputTypeShape(context, 0, info.get()), kDoing);
}

}  // namespace oga::operators
