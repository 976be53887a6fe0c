#include "operators/cpu/matmul_kernel.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "kernels/product/packed_matmul.h"
#include "ort/make.h"

namespace oga::operators {

namespace {

enum Input : size_t { kA, kB, kC };

constexpr size_t kMostDims = std::size(KernelTensor{}.dims);
constexpr int64_t kPieceFloats = 1 << 14;  // that one thread converts

std::optional<kernels::FloatType> FloatTypeOf(ort::ElementType type) {
  switch (type) {
    case ort::ElementType::kFloat: return kernels::FloatType::kFloat;
    case ort::ElementType::kFloat16: return kernels::FloatType::kFloat16;
    case ort::ElementType::kBfloat16: return kernels::FloatType::kBfloat16;
    default: return std::nullopt;
  }
}

kernels::DensePrecision PrecisionFor(CpuMatMul choice, kernels::FloatType stored) {
  const bool as_floats =
      choice == CpuMatMul::kFloat || (choice != CpuMatMul::kBfloat16 && stored == kernels::FloatType::kFloat);
  return as_floats ? kernels::DensePrecision::kFloat : kernels::DensePrecision::kBfloat16;
}

bool IsFixed(const ort::Dimension& dim, int64_t size) { return dim.is_fixed() && dim.size == size; }

// Calls convert(first, count) for pieces of `count` numbers.
template <typename Convert>
void InPieces(const kernels::ParallelFor& parallel_for, int64_t count, const Convert& convert) {
  if (count <= kPieceFloats) return convert(0, count);
  parallel_for(static_cast<size_t>(kernels::DivideUp(count, kPieceFloats)), [&](size_t i) {
    const int64_t first = static_cast<int64_t>(i) * kPieceFloats;
    convert(first, std::min(kPieceFloats, count - first));
  });
}

// What the product needs, and floats in place of tensors of other types; each part on lines of its own.
struct WorkingMemory {
  WorkingMemory(kernels::ScratchPool* pool, size_t product_bytes, int64_t a_floats, int64_t output_floats,
                int64_t bias_floats)
      : loan(pool, WholeLines(product_bytes) + Bytes(a_floats) + Bytes(output_floats) + Bytes(bias_floats)),
        a(reinterpret_cast<float*>(static_cast<char*>(loan.data()) + WholeLines(product_bytes))),
        output(a + Bytes(a_floats) / sizeof(float)),
        bias(output + Bytes(output_floats) / sizeof(float)) {}

  static size_t WholeLines(size_t bytes) { return (bytes + 63) / 64 * 64; }
  static size_t Bytes(int64_t floats) { return WholeLines(static_cast<size_t>(floats) * sizeof(float)); }

  const kernels::ScratchPool::Loan loan;
  float* const a;
  float* const output;
  float* const bias;
};

}  // namespace

MatMulKernel::MatMulKernel(MatMulForm form, CpuMatMul choice, const ort::abi::KernelInfo* raw_info,
                           ProductMemory* memory)
    : form_(form), memory_(memory) {
  const NodeInfo info(raw_info);
  node_ = Message(form == MatMulForm::kMatMul ? "MatMul" : "Gemm", " node ", info.name());
  if (form != MatMulForm::kMatMul) {
    transposed_a_ = info.Int("transA").value_or(0) != 0;
    transposed_b_ = info.Int("transB").value_or(0) != 0;
    alpha_ = info.Float("alpha").value_or(1.0f);
    beta_ = info.Float("beta").value_or(1.0f);
    has_bias_ = info.HasInput(kC);
  }
  const std::string obstacle = Obstacle(info);
  if (obstacle.empty()) {
    PackWeights(choice, info);
    return;
  }
  if (form == MatMulForm::kOwnGemm || info.Input(kA).type != info.Input(kB).type) {
    Throw(StatusCode::kUnsupported, node_, ": ", obstacle, ", which the CPU kernel for mixed types does not take; ",
          "convert the model again");
  }
  MakeRuntimeOp(raw_info, info);
}

std::string MatMulKernel::Obstacle(const NodeInfo& info) const {
  const ort::TensorInfo a = info.Input(kA), b = info.Input(kB);
  if (!FloatTypeOf(a.type)) return Message("input A has element type ", ElementTypeName(a.type));
  if (!FloatTypeOf(b.type)) return Message("input B has element type ", ElementTypeName(b.type));
  const std::optional<KernelTensor> constant = info.Constant(kB);
  if (!constant) return "input B is not a constant";
  if (constant->rank != 2) return Message("input B has shape ", constant->ShapeText());
  if (form_ == MatMulForm::kMatMul) return "";
  if (transposed_a_) return "attribute transA is set";
  if (alpha_ != 1.0f) return Message("attribute alpha is ", alpha_);
  return has_bias_ ? BiasObstacle(info, ort::Dimension{constant->dims[transposed_b_ ? 0 : 1], ""}) : "";
}

std::string MatMulKernel::BiasObstacle(const NodeInfo& info, const ort::Dimension& columns) const {
  if (beta_ != 1.0f) return Message("attribute beta is ", beta_);
  const ort::TensorInfo bias = info.Input(kC);
  if (!FloatTypeOf(bias.type)) return Message("input C has element type ", ElementTypeName(bias.type));
  const bool is_row = (bias.dims.size() == 1 || (bias.dims.size() == 2 && IsFixed(bias.dims[0], 1))) &&
                      IsFixed(bias.dims.back(), columns.size);
  return is_row ? "" : Message("input C has shape ", ort::ShapeText(bias.dims));
}

void MatMulKernel::PackWeights(CpuMatMul choice, const NodeInfo& info) {
  const KernelTensor b = *info.Constant(kB);
  kernels::DenseSource source;
  source.transposed = transposed_b_;
  source.k = b.dims[transposed_b_ ? 1 : 0];
  source.n = b.dims[transposed_b_ ? 0 : 1];
  source.type = *FloatTypeOf(b.type);
  source.data = b.data;
  weights_ = std::make_unique<const kernels::PackedWeights>(kernels::SelectedCpuIsa(), source,
                                                            PrecisionFor(choice, source.type), &memory_->weights,
                                                            memory_->on_load_threads);
  DropPacked(memory_, b.data, static_cast<size_t>(b.Elements() * kernels::BytesOf(source.type)));
}

void MatMulKernel::MakeRuntimeOp(const ort::abi::KernelInfo* raw_info, const NodeInfo& info) {
  constexpr int kVersion = 13;  // since then the meaning has not changed
  const std::string doing = Message(node_, ": the runtime has no kernel for it");
  std::vector<ort::Owned<ort::abi::OpAttr>> attributes;
  const auto add = [&](const char* name, const auto& value, ort::abi::OpAttrType type) {
    attributes.push_back(
        ort::Make<ort::abi::OpAttr>(ort::Api().CreateOpAttr, doing, name, static_cast<const void*>(&value), 1, type));
  };
  const bool is_gemm = form_ == MatMulForm::kGemm;
  const int64_t transposed[] = {transposed_a_, transposed_b_};
  if (is_gemm) {
    add("alpha", alpha_, ort::abi::OpAttrType::kFloat);
    add("beta", beta_, ort::abi::OpAttrType::kFloat);
    add("transA", transposed[0], ort::abi::OpAttrType::kInt);
    add("transB", transposed[1], ort::abi::OpAttrType::kInt);
  }
  std::vector<const ort::abi::OpAttr*> given;
  for (const auto& attribute : attributes) given.push_back(attribute.get());
  const char* type_name = "T";
  const ort::ElementType type = info.Input(kA).type;
  runtime_op_ =
      ort::Make<ort::abi::Op>(ort::Api().CreateOp, doing, raw_info, is_gemm ? "Gemm" : "MatMul", "", kVersion,
                              &type_name, &type, 1, given.data(), static_cast<int>(given.size()), has_bias_ ? 3 : 2, 1);
}

void MatMulKernel::Compute(ort::abi::KernelContext* raw_context) const {
  const KernelContext context(raw_context);
  const KernelTensor a = context.Input(kA);
  if (weights_) return Multiply(context, a);
  context.Run(runtime_op_.get(), has_bias_ ? 3 : 2, OutputDims(a, context.Input(kB)));
}

void* MatMulKernel::ProductOutput(const KernelContext& context, const KernelTensor& a) const {
  const bool fits = a.rank >= 1 && a.rank <= kMostDims && (form_ == MatMulForm::kMatMul || a.rank == 2);
  if (!fits || a.dims[a.rank - 1] != weights_->k()) {
    Throw(StatusCode::kInvalidArgument, node_, ": input A has shape ", a.ShapeText(), "; ",
          form_ == MatMulForm::kMatMul ? Message("at most ", kMostDims) : "two",
          " dimensions are wanted, the last one ", weights_->k());
  }
  int64_t dims[kMostDims];
  std::copy_n(a.dims, a.rank, dims);
  dims[a.rank - 1] = weights_->layout().n;
  return context.Output(0, std::span(dims, a.rank));
}

void MatMulKernel::Multiply(const KernelContext& context, const KernelTensor& a) const {
  void* const output = ProductOutput(context, a);
  const KernelTensor bias = has_bias_ ? context.Input(kC) : KernelTensor{};
  const int64_t rows = std::accumulate(a.dims, a.dims + a.rank - 1, int64_t{1}, std::multiplies<>());
  const int64_t a_floats = rows * weights_->k(), output_floats = rows * weights_->layout().n;
  const kernels::FloatType type = *FloatTypeOf(a.type);
  const bool converts = type != kernels::FloatType::kFloat;
  const bool converts_bias = has_bias_ && bias.type != ort::ElementType::kFloat;
  const WorkingMemory memory(&memory_->scratch, kernels::PackedScratchBytes(*weights_, rows), converts ? a_floats : 0,
                             converts ? output_floats : 0, converts_bias ? weights_->layout().n : 0);
  const kernels::ParallelFor parallel_for = [&context](size_t count, const std::function<void(size_t)>& body) {
    context.ParallelFor(count, body);
  };
  const int64_t bytes = kernels::BytesOf(type);
  if (converts) {
    InPieces(parallel_for, a_floats, [&](int64_t first, int64_t count) {
      kernels::Widen(type, static_cast<const char*>(a.data) + first * bytes, count, memory.a + first);
    });
  }
  if (converts_bias) kernels::Widen(*FloatTypeOf(bias.type), bias.data, weights_->layout().n, memory.bias);
  kernels::PackedMatMulArgs args;
  args.rows = rows;
  args.activations = converts ? memory.a : static_cast<const float*>(a.data);
  args.bias = converts_bias ? memory.bias : static_cast<const float*>(bias.data);
  args.output = converts ? memory.output : static_cast<float*>(output);
  args.scratch = memory.loan.data();
  kernels::PackedMatMul(*weights_, args, parallel_for);
  if (!converts) return;
  InPieces(parallel_for, output_floats, [&](int64_t first, int64_t count) {
    kernels::Narrow(type, memory.output + first, count, static_cast<char*>(output) + first * bytes);
  });
}

std::vector<int64_t> MatMulKernel::OutputDims(const KernelTensor& a, const KernelTensor& b) const {
  if (form_ == MatMulForm::kGemm) return {a.dims[transposed_a_ ? 1 : 0], b.dims[transposed_b_ ? 0 : 1]};
  std::vector<int64_t> left(a.dims, a.dims + a.rank), right(b.dims, b.dims + b.rank);
  if (a.rank == 1) left.insert(left.begin(), 1);
  if (b.rank == 1) right.push_back(1);
  const size_t rank = std::max(left.size(), right.size());
  left.insert(left.begin(), rank - left.size(), 1);
  right.insert(right.begin(), rank - right.size(), 1);
  std::vector<int64_t> dims;
  for (size_t i = 0; i + 2 < rank; ++i) dims.push_back(left[i] == 1 ? right[i] : left[i]);
  if (a.rank != 1) dims.push_back(left[rank - 2]);
  if (b.rank != 1) dims.push_back(right[rank - 1]);
  return dims;
}

}  // namespace oga::operators
