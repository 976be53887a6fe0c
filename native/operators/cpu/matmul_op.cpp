#include "operators/cpu/matmul_op.h"

#include <algorithm>

#include "operators/cpu/matmul_kernel.h"

namespace oga::operators {

namespace {

// A version that ONNX's operators never had: the runtime's optimisers know theirs by it, and leave ours alone.
constexpr int kVersion = 2;

const MatMulOp& AsOp(const ort::abi::CustomOp* op) { return *static_cast<const MatMulOp*>(op); }

MatMulKernel* MakeKernel(const ort::abi::CustomOp* op, const ort::abi::KernelInfo* info) {
  return new MatMulKernel(AsOp(op).form, AsOp(op).choice, info, AsOp(op).memory);
}

const ort::Dimension& Broadcast(const ort::Dimension& a, const ort::Dimension& b) {
  static const ort::Dimension unknown;
  if (a.size == 1) return b;
  if (b.size == 1 || a.is_fixed()) return a;
  if (b.is_fixed()) return b;
  return a.symbol == b.symbol ? a : unknown;
}

std::vector<ort::Dimension> MatMulDims(std::vector<ort::Dimension> a, std::vector<ort::Dimension> b) {
  const bool vector_a = a.size() == 1, vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), ort::Dimension{1, ""});
  if (vector_b) b.push_back(ort::Dimension{1, ""});
  const ort::Dimension rows = a[a.size() - 2], columns = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  std::vector<ort::Dimension>& longer = a.size() >= b.size() ? a : b;
  std::vector<ort::Dimension>& shorter = a.size() >= b.size() ? b : a;
  for (size_t i = 0; i < shorter.size(); ++i) {
    ort::Dimension& dim = longer[longer.size() - 1 - i];
    dim = ort::Dimension(Broadcast(dim, shorter[shorter.size() - 1 - i]));
  }
  if (!vector_a) longer.push_back(rows);
  if (!vector_b) longer.push_back(columns);
  return longer;
}

ort::abi::Status* InferMatMul(const ort::abi::CustomOp*, ort::abi::ShapeInferContext* context) noexcept {
  return ort::Guarded([&] {
    auto output = InferredInput(context, 0);
    const auto b = InferredInput(context, 1);
    if (!output || !b) return;
    output->dims = MatMulDims(output->dims, b->dims);
    if (!output->dims.empty()) PromiseOutput(context, *output);
  });
}

ort::abi::Status* InferGemm(const ort::abi::CustomOp*, ort::abi::ShapeInferContext* context) noexcept {
  return ort::Guarded([&] {
    auto output = InferredInput(context, 0);
    const auto b = InferredInput(context, 1);
    if (!output || !b || output->dims.size() != 2 || b->dims.size() != 2) return;
    output->dims = {output->dims[InferredInt(context, "transA") != 0 ? 1 : 0],
                    b->dims[InferredInt(context, "transB") != 0 ? 0 : 1]};
    PromiseOutput(context, *output);
  });
}

}  // namespace

MatMulOp::MatMulOp(MatMulForm form, CpuMatMul choice, ProductMemory* memory) noexcept
    : ProductOp(memory), form(form), choice(choice) {
  GetName = [](const ort::abi::CustomOp* op) noexcept {
    return AsOp(op).form == MatMulForm::kMatMul ? "MatMul" : "Gemm";
  };
  GetInputTypeCount = [](const ort::abi::CustomOp* op) noexcept {
    return AsOp(op).form == MatMulForm::kMatMul ? size_t{2} : size_t{3};
  };
  GetInputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kUndefined; };
  GetOutputType = [](const ort::abi::CustomOp*, size_t) noexcept { return ort::ElementType::kUndefined; };
  GetInputCharacteristic = [](const ort::abi::CustomOp*, size_t input) noexcept {
    return input < 2 ? ort::abi::Characteristic::kRequired : ort::abi::Characteristic::kOptional;
  };
  InferOutputShape = form == MatMulForm::kMatMul ? InferMatMul : InferGemm;
  if (form != MatMulForm::kOwnGemm) GetStartVersion = [](const ort::abi::CustomOp*) noexcept { return kVersion; };
  SetKernel<MatMulKernel, MakeKernel>(this);
}

}  // namespace oga::operators
