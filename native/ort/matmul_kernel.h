// One MatMul or Gemm node of a loaded graph. With a constant matrix on its right side it is ours: the weights are
// packed at load. Every other form goes on to the runtime's kernel.
//
// Owned by the session. Compute is const and runs on any number of threads at once, one per execution.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/packed_weights.h"
#include "ort/handles.h"
#include "ort/kernel_context.h"
#include "ort/matmul_op.h"
#include "ort/node_info.h"

namespace oga::ort {

class MatMulKernel {
 public:
  // `memory` outlives this. Throws Error: kUnsupported for what neither we nor the runtime compute, naming the node and
  // what was found.
  MatMulKernel(MatMulForm form, CpuMatMul choice, const abi::KernelInfo* info, ProductMemory* memory);

  // Throws Error{kInvalidArgument} for inputs that do not fit together.
  void Compute(abi::KernelContext* context) const;

 private:
  // Why the node is not ours; empty when it is.
  std::string Obstacle(const NodeInfo& info) const;
  std::string BiasObstacle(const NodeInfo& info, const Dimension& columns) const;
  void PackWeights(CpuMatMul choice, const NodeInfo& info);
  void MakeRuntimeOp(const abi::KernelInfo* raw_info, const NodeInfo& info);

  void* ProductOutput(const KernelContext& context, const KernelTensor& a) const;
  void Multiply(const KernelContext& context, const KernelTensor& a) const;
  std::vector<int64_t> OutputDims(const KernelTensor& a, const KernelTensor& b) const;

  std::string node_;  // "MatMul node /layers.3/mlp/up"
  MatMulForm form_;
  bool transposed_a_ = false;  // Gemm's attributes
  bool transposed_b_ = false;
  float alpha_ = 1.0f;
  float beta_ = 1.0f;
  bool has_bias_ = false;
  ProductMemory* const memory_;
  std::unique_ptr<const kernels::PackedWeights> weights_;  // or
  Owned<abi::Op> runtime_op_;
};

}  // namespace oga::ort
