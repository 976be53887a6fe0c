#include "ort/matmul_nbits_op.h"

#include "ort/library.h"
#include "ort/matmul_nbits_kernel.h"

namespace oga::ort {

namespace {

MatMulNBitsKernel* MakeKernel(const abi::CustomOp* op, const abi::KernelInfo* info) {
  return new MatMulNBitsKernel(info, static_cast<const MatMulNBitsOp*>(op)->memory);
}

// The output is the activations' shape with B's first dimension, N, as its last.
abi::Status* InferShape(const abi::CustomOp*, abi::ShapeInferContext* context) noexcept {
  return Guarded([&] {
    auto output = InferredInput(context, kActivations);
    if (!output) return;
    const auto codes = InferredInput(context, kCodes);
    output->dims.back() = codes ? codes->dims.front() : Dimension{};
    PromiseOutput(context, *output);
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

MatMulNBitsOp::MatMulNBitsOp(ProductMemory* memory) noexcept : ProductOp(memory) {
  GetName = [](const abi::CustomOp*) noexcept { return "MatMulNBits"; };
  GetInputTypeCount = [](const abi::CustomOp*) noexcept { return static_cast<size_t>(kMatMulNBitsInputs); };
  GetInputCharacteristic = [](const abi::CustomOp*, size_t input) noexcept {
    return input <= kScales ? abi::Characteristic::kRequired : abi::Characteristic::kOptional;
  };
  SetKernel<MatMulNBitsKernel, MakeKernel>(this);
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
