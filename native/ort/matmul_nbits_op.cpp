#include "ort/matmul_nbits_op.h"

#include <limits>
#include <memory>

#include "ort/make.h"
#include "ort/matmul_nbits_kernel.h"
#include "ort/shape.h"

namespace oga::ort {

namespace {

abi::Status* MakeKernel(const abi::CustomOp* op, const void* const*, const abi::KernelInfo* info,
                        void** kernel) noexcept {
  return Guarded([&] {
    const auto* const shared = static_cast<const MatMulNBitsOp*>(op);
    *kernel = std::make_unique<MatMulNBitsKernel>(info, &shared->weights, &shared->scratch).release();
  });
}

abi::Status* RunKernel(void* kernel, abi::KernelContext* context) noexcept {
  return Guarded([&] { static_cast<const MatMulNBitsKernel*>(kernel)->Compute(context); });
}

void DeleteKernel(void* kernel) noexcept { delete static_cast<MatMulNBitsKernel*>(kernel); }

// The output is the activations' shape with B's first dimension, N, as its last.
abi::Status* InferShape(const abi::CustomOp*, abi::ShapeInferContext* context) noexcept {
  return Guarded([&] {
    constexpr const char* kDoing = "cannot infer MatMulNBits's shapes";
    abi::ShapeInfo* activations = nullptr;
    abi::ShapeInfo* codes = nullptr;
    if (!Succeeded(Api().ShapeInferContext_GetInputTypeShape(context, kActivations, &activations))) return;
    if (!Succeeded(Api().ShapeInferContext_GetInputTypeShape(context, kCodes, &codes))) return;
    TensorInfo output = ReadShapeInfo(activations);
    const TensorInfo weights = ReadShapeInfo(codes);
    if (output.dims.empty()) return;
    output.dims.back() = weights.dims.empty() ? Dimension{} : weights.dims.front();
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
  });
}

// Without inference an open output would take the type of an input that may be absent.
ElementType TypeWithoutInference(size_t input) {
  switch (input) {
    case kCodes: return ElementType::kUint8;
    case kGroupIndex: return ElementType::kInt32;
    case kZeroPoints: return ElementType::kUndefined;
    default: return ElementType::kFloat;
  }
}

}  // namespace

MatMulNBitsOp::MatMulNBitsOp() noexcept {
  GetName = [](const abi::CustomOp*) noexcept { return "MatMulNBits"; };
  GetExecutionProviderType = [](const abi::CustomOp*) noexcept { return "CPUExecutionProvider"; };
  GetInputTypeCount = [](const abi::CustomOp*) noexcept { return static_cast<size_t>(kMatMulNBitsInputs); };
  GetOutputTypeCount = [](const abi::CustomOp*) noexcept { return size_t{1}; };
  GetInputCharacteristic = [](const abi::CustomOp*, size_t input) noexcept {
    return input <= kScales ? abi::Characteristic::kRequired : abi::Characteristic::kOptional;
  };
  GetOutputCharacteristic = [](const abi::CustomOp*, size_t) noexcept { return abi::Characteristic::kRequired; };
  GetInputMemoryType = [](const abi::CustomOp*, size_t) noexcept { return abi::MemoryType::kDefault; };
  GetVariadicInputMinArity = [](const abi::CustomOp*) noexcept { return 1; };
  GetVariadicInputHomogeneity = [](const abi::CustomOp*) noexcept { return 1; };
  GetVariadicOutputMinArity = [](const abi::CustomOp*) noexcept { return 1; };
  GetVariadicOutputHomogeneity = [](const abi::CustomOp*) noexcept { return 1; };
  CreateKernelV2 = MakeKernel;
  KernelComputeV2 = RunKernel;
  KernelDestroy = DeleteKernel;
  GetStartVersion = [](const abi::CustomOp*) noexcept { return 1; };
  GetEndVersion = [](const abi::CustomOp*) noexcept { return std::numeric_limits<int>::max(); };
  // Release 1.23 crashes when an operator that infers shapes has an absent input before its last one.
  if (LoadedLibrary().IsAtLeast(1, 24)) {
    GetInputType = [](const abi::CustomOp*, size_t) noexcept { return ElementType::kUndefined; };
    GetOutputType = [](const abi::CustomOp*, size_t) noexcept { return ElementType::kUndefined; };
    InferOutputShape = InferShape;
  } else {
    GetInputType = [](const abi::CustomOp*, size_t input) noexcept { return TypeWithoutInference(input); };
    GetOutputType = [](const abi::CustomOp*, size_t) noexcept { return ElementType::kFloat; };
  }
}

}  // namespace oga::ort
