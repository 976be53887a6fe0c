#include "operators/cpu/cpu_operators.h"

#include <cstdlib>

#include "operators/cpu/load_threads.h"
#include "operators/cpu/matmul_nbits_op.h"
#include "operators/cpu/matmul_op.h"
#include "operators/cpu/paged_attention_op.h"
#include "ort/make.h"
#include "ort/thread_count.h"

namespace oga::operators {

namespace {

ort::Owned<ort::abi::CustomOpDomain> MakeDomain(const char* name,
                                                std::initializer_list<const ort::abi::CustomOp*> operators) {
  auto domain =
      ort::Make<ort::abi::CustomOpDomain>(ort::Api().CreateCustomOpDomain, "cannot create an operator domain", name);
  for (const ort::abi::CustomOp* op : operators) {
    ort::Check(ort::Api().CustomOpDomain_Add(domain.get(), op), Message("cannot add the operator ", op->GetName(op)));
  }
  return domain;
}

// ONNX's own MatMul and Gemm stay the runtime's as long as that computes what is wanted: floats in floats.
bool ReplacesMatMul(CpuMatMul matmul, bool has_half_products) {
  return matmul == CpuMatMul::kBfloat16 || (matmul != CpuMatMul::kRuntime && has_half_products);
}

}  // namespace

ort::SessionOptions CpuSessionOptions(const CpuSettings& settings) {
  const int threads = ort::ChooseThreadCount(settings.intra_op_threads);
  return {.threads = threads, .operators = std::make_unique<const CpuOperators>(settings, threads)};
}

CpuOperators::CpuOperators(const CpuSettings& settings, int threads)
    : memory_(std::make_unique<ProductMemory>(settings.weights, settings.workspace)),
      paged_attention_(std::make_unique<const PagedAttentionOp>(threads)) {
  memory_->on_load_threads = OnLoadThreads(threads);
  AddProducts(ResolveCpuMatMul(std::getenv("OGA_CPU_MATMUL"), settings.matmul), settings.has_half_products);
}

void CpuOperators::AddProducts(CpuMatMul matmul, bool has_half_products) {
  const auto make = [&](MatMulForm form) {
    return matmuls_.emplace_back(std::make_unique<const MatMulOp>(form, matmul, memory_.get())).get();
  };
  domains_.push_back(MakeDomain("com.microsoft", {paged_attention_.get()}));
  if (matmul != CpuMatMul::kRuntime) {
    matmul_nbits_ = std::make_unique<const MatMulNBitsOp>(NBitsForm::kPlain, memory_.get());
    ort::Check(ort::Api().CustomOpDomain_Add(domains_.back().get(), matmul_nbits_.get()),
               "cannot add the operator MatMulNBits");
  }
  gated_ = std::make_unique<const MatMulNBitsOp>(NBitsForm::kGated, memory_.get());
  domains_.push_back(MakeDomain("oga", {make(MatMulForm::kOwnGemm), gated_.get()}));
  if (!ReplacesMatMul(matmul, has_half_products)) return;
  domains_.push_back(MakeDomain("", {make(MatMulForm::kMatMul), make(MatMulForm::kGemm)}));
}

CpuOperators::~CpuOperators() = default;

void CpuOperators::AddTo(ort::abi::SessionOptions* options) const {
  for (const auto& domain : domains_) {
    ort::Check(ort::Api().AddCustomOpDomain(options, domain.get()), "cannot register liboga's operators");
  }
}

}  // namespace oga::operators
