#include "ort/matmul_op.h"

#include <algorithm>

#include "ort/matmul_kernel.h"

namespace oga::ort {

namespace {

// A version that ONNX's operators never had: the runtime's optimisers know theirs by it, and leave ours alone.
constexpr int kVersion = 2;

const MatMulOp& AsOp(const abi::CustomOp* op) { return *static_cast<const MatMulOp*>(op); }

MatMulKernel* MakeKernel(const abi::CustomOp* op, const abi::KernelInfo* info) {
  return new MatMulKernel(AsOp(op).form, AsOp(op).choice, info, AsOp(op).memory);
}

const Dimension& Broadcast(const Dimension& a, const Dimension& b) {
  static const Dimension unknown;
  if (a.size == 1) return b;
  if (b.size == 1 || a.is_fixed()) return a;
  if (b.is_fixed()) return b;
  return a.symbol == b.symbol ? a : unknown;
}

std::vector<Dimension> MatMulDims(std::vector<Dimension> a, std::vector<Dimension> b) {
  const bool vector_a = a.size() == 1, vector_b = b.size() == 1;
  if (vector_a) a.insert(a.begin(), Dimension{1, ""});
  if (vector_b) b.push_back(Dimension{1, ""});
  const Dimension rows = a[a.size() - 2], columns = b.back();
  a.resize(a.size() - 2);
  b.resize(b.size() - 2);
  std::vector<Dimension>& longer = a.size() >= b.size() ? a : b;
  std::vector<Dimension>& shorter = a.size() >= b.size() ? b : a;
  for (size_t i = 0; i < shorter.size(); ++i) {
    Dimension& dim = longer[longer.size() - 1 - i];
    dim = Dimension(Broadcast(dim, shorter[shorter.size() - 1 - i]));
  }
  if (!vector_a) longer.push_back(rows);
  if (!vector_b) longer.push_back(columns);
  return longer;
}

abi::Status* InferMatMul(const abi::CustomOp*, abi::ShapeInferContext* context) noexcept {
  return Guarded([&] {
    auto output = InferredInput(context, 0);
    const auto b = InferredInput(context, 1);
    if (!output || !b) return;
    output->dims = MatMulDims(output->dims, b->dims);
    if (!output->dims.empty()) PromiseOutput(context, *output);
  });
}

abi::Status* InferGemm(const abi::CustomOp*, abi::ShapeInferContext* context) noexcept {
  return Guarded([&] {
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
  GetName = [](const abi::CustomOp* op) noexcept { return AsOp(op).form == MatMulForm::kMatMul ? "MatMul" : "Gemm"; };
  GetInputTypeCount = [](const abi::CustomOp* op) noexcept {
    return AsOp(op).form == MatMulForm::kMatMul ? size_t{2} : size_t{3};
  };
  GetInputType = [](const abi::CustomOp*, size_t) noexcept { return ElementType::kUndefined; };
  GetOutputType = [](const abi::CustomOp*, size_t) noexcept { return ElementType::kUndefined; };
  GetInputCharacteristic = [](const abi::CustomOp*, size_t input) noexcept {
    return input < 2 ? abi::Characteristic::kRequired : abi::Characteristic::kOptional;
  };
  InferOutputShape = form == MatMulForm::kMatMul ? InferMatMul : InferGemm;
  if (form != MatMulForm::kOwnGemm) GetStartVersion = [](const abi::CustomOp*) noexcept { return kVersion; };
  SetKernel<MatMulKernel, MakeKernel>(this);
}

}  // namespace oga::ort
