#include "operators/cpu/matmul_nbits_op.h"

#include <algorithm>
#include <iterator>

#include "operators/cpu/matmul_nbits_kernel.h"
#include "ort/library.h"

namespace oga::operators {

namespace {

constexpr const char* kPlainInputs[] = {"A", "B", "scales", "zero_points", "g_idx", "bias"};
constexpr NBitsMatrixInputs kPlainMatrices[] = {{1, 2, 3}};
constexpr NBitsOperator kPlain = {"MatMulNBits", kPlainInputs, kPlainMatrices, 4, 5};

constexpr const char* kGatedInputs[] = {
    "A", "gate", "gate_scales", "up", "up_scales", "gate_zero_points", "up_zero_points"};
constexpr NBitsMatrixInputs kGatedMatrices[] = {{1, 2, 5}, {3, 4, 6}};
constexpr NBitsOperator kGated = {"GatedMatMulNBits", kGatedInputs, kGatedMatrices, std::nullopt, std::nullopt};

const MatMulNBitsOp& AsOp(const ort::abi::CustomOp* op) { return *static_cast<const MatMulNBitsOp*>(op); }

MatMulNBitsKernel* MakeKernel(const ort::abi::CustomOp* op, const ort::abi::KernelInfo* info) {
  return new MatMulNBitsKernel(AsOp(op).form, info, AsOp(op).memory);
}

// The output is the activations' shape with the codes' first dimension, N, as its last.
ort::abi::Status* InferShape(const ort::abi::CustomOp* op, ort::abi::ShapeInferContext* context) noexcept {
  return ort::Guarded([&] {
    auto output = InferredInput(context, 0);
    if (!output) return;
    const auto codes = InferredInput(context, OperatorOf(AsOp(op).form).matrices[0].codes);
    output->dims.back() = codes ? codes->dims.front() : ort::Dimension{};
    PromiseOutput(context, *output);
  });
}

// Without inference an open output would take the type of an input that may be absent.
ort::ElementType TypeWithoutInference(const NBitsOperator& described, size_t input) {
  if (described.group_index == input) return ort::ElementType::kInt32;
  for (const NBitsMatrixInputs& matrix : described.matrices) {
    if (input == matrix.codes) return ort::ElementType::kUint8;
    if (input == matrix.zero_points) return ort::ElementType::kUndefined;
  }
  return ort::ElementType::kFloat;
}

}  // namespace

bool NBitsOperator::IsOptional(size_t input) const {
  const auto is_zero_points = [&](const NBitsMatrixInputs& matrix) { return matrix.zero_points == input; };
  return group_index == input || bias == input || std::any_of(matrices.begin(), matrices.end(), is_zero_points);
}

const NBitsOperator& OperatorOf(NBitsForm form) { return form == NBitsForm::kPlain ? kPlain : kGated; }

MatMulNBitsOp::MatMulNBitsOp(NBitsForm form, ProductMemory* memory) noexcept : ProductOp(memory), form(form) {
  GetName = [](const ort::abi::CustomOp* op) noexcept { return OperatorOf(AsOp(op).form).name; };
  GetInputTypeCount = [](const ort::abi::CustomOp* op) noexcept { return OperatorOf(AsOp(op).form).inputs.size(); };
  GetInputCharacteristic = [](const ort::abi::CustomOp* op, size_t input) noexcept {
    const bool is_optional = OperatorOf(AsOp(op).form).IsOptional(input);
    return is_optional ? ort::abi::Characteristic::kOptional : ort::abi::Characteristic::kRequired;
  };
  SetKernel<MatMulNBitsKernel, MakeKernel>(this);
  // Release 1.23 crashes when an operator that infers shapes has an absent input before its last one.
  if (ort::LoadedLibrary().IsAtLeast(1, 24)) {
    GetInputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kUndefined; };
    GetOutputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kUndefined; };
    InferOutputShape = InferShape;
  } else {
    GetInputType = [](const ort::abi::CustomOp* op, size_t input) noexcept {
      return TypeWithoutInference(OperatorOf(AsOp(op).form), input);
    };
    GetOutputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kFloat; };
  }
}

}  // namespace oga::operators
