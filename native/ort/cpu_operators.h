// The operators that liboga brings to CPU sessions, under the runtime's own operator names.
//
// Owned by one Session, which calls into it for as long as it lives.
#pragma once

#include <memory>
#include <vector>

#include "ort/cpu_matmul.h"
#include "ort/handles.h"

namespace oga::ort {

struct MatMulNBitsOp;
struct MatMulOp;
struct PagedAttentionOp;
struct ProductMemory;

class CpuOperators {
 public:
  // Products as `matmul` and OGA_CPU_MATMUL say; `has_half_products`: a MatMul or Gemm of the graph has weights of 16
  // bits. For sessions of `threads` threads. Throws Error{kInvalidArgument} when OGA_CPU_MATMUL names nothing we know.
  CpuOperators(CpuMatMul matmul, bool has_half_products, int threads);
  ~CpuOperators();

  // Sessions made with `options` use these operators instead of the runtime's.
  void AddTo(abi::SessionOptions* options) const;

 private:
  void AddProducts(CpuMatMul matmul, bool has_half_products);

  std::unique_ptr<ProductMemory> memory_;
  std::unique_ptr<const PagedAttentionOp> paged_attention_;
  std::unique_ptr<const MatMulNBitsOp> matmul_nbits_;  // null when the runtime's is used
  std::unique_ptr<const MatMulNBitsOp> gated_;
  std::vector<std::unique_ptr<const MatMulOp>> matmuls_;
  std::vector<Owned<abi::CustomOpDomain>> domains_;
};

}  // namespace oga::ort
