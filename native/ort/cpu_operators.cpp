#include "ort/cpu_operators.h"

#include <cstdlib>

#include "ort/load_threads.h"
#include "ort/make.h"
#include "ort/matmul_nbits_op.h"
#include "ort/matmul_op.h"
#include "ort/paged_attention_op.h"

namespace oga::ort {

namespace {

Owned<abi::CustomOpDomain> MakeDomain(const char* name, std::initializer_list<const abi::CustomOp*> operators) {
  auto domain = Make<abi::CustomOpDomain>(Api().CreateCustomOpDomain, "cannot create an operator domain", name);
  for (const abi::CustomOp* op : operators) {
    Check(Api().CustomOpDomain_Add(domain.get(), op), Message("cannot add the operator ", op->GetName(op)));
  }
  return domain;
}

// ONNX's own MatMul and Gemm stay the runtime's as long as that computes what is wanted: floats in floats.
bool ReplacesMatMul(CpuMatMul matmul, bool has_half_products) {
  return matmul == CpuMatMul::kBfloat16 || (matmul != CpuMatMul::kRuntime && has_half_products);
}

}  // namespace

CpuOperators::CpuOperators(CpuMatMul matmul, bool has_half_products, int threads)
    : memory_(std::make_unique<ProductMemory>()), paged_attention_(std::make_unique<const PagedAttentionOp>(threads)) {
  memory_->on_load_threads = OnLoadThreads(threads);
  AddProducts(ResolveCpuMatMul(std::getenv("OGA_CPU_MATMUL"), matmul), has_half_products);
}

void CpuOperators::AddProducts(CpuMatMul matmul, bool has_half_products) {
  const auto make = [&](MatMulForm form) {
    return matmuls_.emplace_back(std::make_unique<const MatMulOp>(form, matmul, memory_.get())).get();
  };
  domains_.push_back(MakeDomain("com.microsoft", {paged_attention_.get()}));
  if (matmul != CpuMatMul::kRuntime) {
    matmul_nbits_ = std::make_unique<const MatMulNBitsOp>(NBitsForm::kPlain, memory_.get());
    Check(Api().CustomOpDomain_Add(domains_.back().get(), matmul_nbits_.get()), "cannot add the operator MatMulNBits");
  }
  gated_ = std::make_unique<const MatMulNBitsOp>(NBitsForm::kGated, memory_.get());
  domains_.push_back(MakeDomain("oga", {make(MatMulForm::kOwnGemm), gated_.get()}));
  if (!ReplacesMatMul(matmul, has_half_products)) return;
  domains_.push_back(MakeDomain("", {make(MatMulForm::kMatMul), make(MatMulForm::kGemm)}));
}

CpuOperators::~CpuOperators() = default;

void CpuOperators::AddTo(abi::SessionOptions* options) const {
  for (const auto& domain : domains_) {
    Check(Api().AddCustomOpDomain(options, domain.get()), "cannot register liboga's operators");
  }
}

}  // namespace oga::ort
