// The operators that liboga brings to CPU sessions, under the runtime's own operator names.
//
// Owned by one session, which calls into it for as long as it lives.
#pragma once

#include <memory>
#include <vector>

#include "memory/ledger.h"
#include "operators/cpu/cpu_matmul.h"
#include "ort/custom_operators.h"
#include "ort/handles.h"
#include "ort/session.h"

namespace oga::operators {

struct MatMulNBitsOp;
struct MatMulOp;
struct PagedAttentionOp;
struct ProductMemory;

// What a host chooses about the products of a session.
struct CpuSettings {
  int intra_op_threads = 0;  // as ort::ChooseThreadCount takes it
  CpuMatMul matmul = CpuMatMul::kAuto;
  bool has_half_products = false;  // whether a MatMul or Gemm of the graph has weights of 16 bits
  // Outlive the session; null: nothing is charged.
  Lease* weights =
      nullptr;  // of the model's files; becomes that of the packed weights as they replace the files' pages
  Lease* workspace = nullptr;
};

// Options of a session over these operators. Throws what the constructor and ort::ChooseThreadCount throw.
ort::SessionOptions CpuSessionOptions(const CpuSettings& settings);

class CpuOperators final : public ort::CustomOperators {
 public:
  // Products as the settings and OGA_CPU_MATMUL say, for sessions of `threads` threads. Throws Error{kInvalidArgument}
  // when OGA_CPU_MATMUL names nothing we know.
  CpuOperators(const CpuSettings& settings, int threads);
  ~CpuOperators() override;

  void AddTo(ort::abi::SessionOptions* options) const override;

 private:
  void AddProducts(CpuMatMul matmul, bool has_half_products);

  std::unique_ptr<ProductMemory> memory_;
  std::unique_ptr<const PagedAttentionOp> paged_attention_;
  std::unique_ptr<const MatMulNBitsOp> matmul_nbits_;  // null when the runtime's is used
  std::unique_ptr<const MatMulNBitsOp> gated_;
  std::vector<std::unique_ptr<const MatMulOp>> matmuls_;
  std::vector<ort::Owned<ort::abi::CustomOpDomain>> domains_;
};

}  // namespace oga::operators
